"""Structural tags as sources of grammars; the face of it is :mod:`tokfold.structural_tags`.

- :mod:`~tokfold._tags.fields`, :mod:`~tokfold._tags.formats`: what a tag says, and its errors
- :mod:`~tokfold._tags.reading`, :mod:`~tokfold._tags.old_form`: JSON to formats
- :mod:`~tokfold._tags.literals`, :mod:`~tokfold._tags.markers`: texts, and special tokens in them
- :mod:`~tokfold._tags.leaves`: schemas, patterns and grammar texts, each converted once
- :mod:`~tokfold._tags.pieces`: what is handed over to the core
- :mod:`~tokfold._tags.known`: what a changed tag takes over, and which trigger a tag begins with; a
  tag that begins with none, or with several, is refused
- :mod:`~tokfold._tags.endless`: free text that nothing ends
- :mod:`~tokfold._tags.assembly`: the frame around the leaves
- :mod:`~tokfold._tags.changing`: tags that are added and removed
"""
