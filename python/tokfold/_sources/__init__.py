"""What a grammar is made of: a record for each kind of source.

- :mod:`~tokfold._sources.record`: what every source can do
- :mod:`~tokfold._sources.characters`: texts with lone surrogates, which no grammar reads
- :mod:`~tokfold._sources.texts`: grammar text and Lark, which may name tokens of a vocabulary
- :mod:`~tokfold._sources.schema`: JSON Schemas with the options of their texts; ``text_of`` makes
  them of pydantic models and other types
- :mod:`~tokfold._sources.annotations`: annotations of schemas that are no JSON
- :mod:`~tokfold._sources.types`: which objects are pydantic's, and words for those without
- :mod:`~tokfold._sources.schema_errors`: what errors of schemas say more than the core
- :mod:`~tokfold._sources.regular`: patterns and choices
- :mod:`~tokfold._sources.operations`: unions, concatenations and repetitions of grammars
- :mod:`~tokfold._sources.frames`: text around parts that are grammars, and choices of tags
- :mod:`~tokfold._sources.built`: a source and what became of it
"""
