"""What a model is: the written description, the layers it is built of, and their exact parameter counts."""
