"""What layers are made of: kinds of token mixing and of feed-forward parts that answer the same questions."""
