"""The explorer and its pictures inside other tools' documents: blocks of Sphinx and MkDocs."""
