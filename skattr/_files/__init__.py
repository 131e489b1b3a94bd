"""Files: read as the background's types, models loaded safely, results written whole."""
