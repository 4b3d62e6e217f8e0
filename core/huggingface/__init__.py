"""A Hugging Face config.json to a model: read by field first, by family where the file is silent."""

from .importing import Imported, import_file, read_config

__all__ = ["Imported", "import_file", "read_config"]
