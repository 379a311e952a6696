# SPDX-License-Identifier: Apache-2.0
"""Prints phrases.gbnf: English phrases over some five thousand words, made of stems and endings.

    python grammars/hard/phrases/make.py > grammars/hard/phrases/phrases.gbnf

The same each time.
"""

from __future__ import annotations

from collections.abc import Iterable

HEAD = """# SPDX-License-Identifier: Apache-2.0
#
# English phrases over {count} words, after R. Quirk, S. Greenbaum, G. Leech, J. Svartvik, "A
# Comprehensive Grammar of the English Language" (1985): chapter 2 (clauses and phrases), chapter
# 17 (the noun phrase), appendix I (how words are formed). Printed by make.py, which has the
# stems; change that.
#
# Each word is a production of its own. Words of several kinds are spelled alike: a form in "ed"
# is a verb, a participle behind a noun or one before it; a form in "ing" is that, and a noun as
# well; a noun stands before another; and words begin others ("out", "outlook", "outlooker").
# Where phrases attach is open, and what follows a noun or a verb is left-recursive: very ambiguous.
# Superset: nothing need make sense; verbs take an object or none; any prefix goes with any stem.
# Left out: capital letters, questions, perfect tenses, pronouns as objects, irregular words.

root ::= sentence (" " sentence)*
sentence ::= clauses [.!?]
clauses ::= clause | clause ", " coordinator " " clauses | subordinator " " clause ", " clause
  | adverb ", " clause | pp ", " clause
clause ::= np_sg " " vp_sg | np_pl " " vp_pl

# noun phrases
np ::= np_sg | np_pl
np_sg ::= core_sg | np_sg " " pp | np_sg " " relative_sg | np_sg " " participial
np_pl ::= core_pl | np_pl " " pp | np_pl " " relative_pl | np_pl " " participial
  | np " " ("and" | "or") " " np
core_sg ::= (determiner | determiner_sg) " " nominal_sg | name | nominal_ing | "it" | "she" | "he"
core_pl ::= ((determiner | determiner_pl) " ")? nominal_pl | "they" | "we"
nominal_sg ::= (modifier " ")* noun_sg
nominal_pl ::= (number " ")? (modifier " ")* noun_pl
nominal_ing ::= verb_ing (" " np)?
modifier ::= adjective | adverb " " adjective | verb_ing | verb_ed | noun_sg | noun_sg "-" verb_ed
participial ::= verb_ing (" " np)? | verb_ed
relative_sg ::= relative " " (vp_sg | clause)
relative_pl ::= relative " " (vp_pl | clause)

# verb phrases and what goes with them
vp_sg ::= verb_s rest | be_sg " " predicate | vp_both | vp_sg " and " vp_sg
vp_pl ::= verb rest | be_pl " " predicate | vp_both | vp_pl " and " vp_pl
vp_both ::= verb_ed rest | modal " " (adverb " ")? verb rest
  | modal " be " predicate | adverb " " vp_both
rest ::= (" " np)? | rest " " pp | rest " " adverb | rest " that " clause | rest " to " verb rest
predicate ::= adjective | np | pp | verb_ing rest | verb_ed | adverb " " predicate
  | predicate " " pp | predicate " " adverb
pp ::= preposition " " np | preposition " " nominal_ing

# words
"""
BE_SG = "is was"
BE_PL = "are were"
MODALS = "can could may might must shall should will would"
COORDINATORS = "and but or so yet"
SUBORDINATORS = "although as because before if once since though unless until when where while"
RELATIVES = "that which who"
DETERMINERS = "the my your his her its our their no some any"
DETERMINERS_SG = "a every each this that another"
DETERMINERS_PL = "all both few many most several these those"
PREPOSITIONS = """about above across after against along among around as at before behind below
beneath beside between beyond by down during except for from in inside into like near of off on out
outside over past since through to toward under until up upon with within without"""
ADVERBS = """again almost already always ever here never now often once perhaps quite rather soon
there too very"""
NAMES = """ada alan barbara charles dana edsger emmy frances grace hedy ida john karen kurt leslie
marvin noam niklaus paul radia robin sofia tony ursula vera whitfield"""

# A "+" doubles the last letter before an ending.
VERBS = """add align answer ask balance book call carry check clean climb close code compile
connect cook count cover deliver design edit fill form guard handle harvest help join jump land
learn link listen look manage map+ mark measure move name open order paint plan+ plant play point
print question reach record report save search serve show sign start stop+ store study test trade
train turn use visit wait walk watch work"""
PREFIXES = ("", "re", "mis", "over", "out", "pre")
NOUNS = """animal apple arm artist autumn baby bag ball bank basket bean bell bird boat body book
bridge brother brush bus butter cake camera candle carpet cat chair circle city clock cloud coin
cottage desert doctor dog dream engine family fence field finger flag flower forest fox garden
giant hammer hill horse island jacket key lake letter market meadow morning mountain needle owl
paper pencil pepper pilot planet potato question river road roof sailor singer sister stone story
student table teacher village window"""
FIRSTS = """air back bed bird book camp door dream fire foot hand head home land light moon night
sea side snow star sun thunder wagon water wind wood yard"""
SECONDS = """bank bird board boat box cloth craft field flower guard hold house keeper light line
maker mark mill place port room side storm work"""
ADJECTIVES = """able ancient brief bright calm certain cheap clean clear clever cold common crisp
cruel curious dark deep dry eager early fair familiar fast firm fresh gentle glad golden grand
happy harsh heavy honest humble keen kind lazy light likely lively loud narrow neat noble odd open
pale polite proud pure quick quiet rare sharp short silent slow smooth soft steady strange strict
strong sweet swift tall true warm wide wise young"""
ONES = "one two three four five six seven eight nine"
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

VOWELS = "aeiou"
WIDTH = 104


def ends_in_consonant_y(stem: str) -> bool:
    """Whether the ``y`` changes before an ending."""
    return stem.endswith("y") and stem[-2] not in VOWELS


def with_s(stem: str) -> str:
    """The plural of a noun, or what she does."""
    if ends_in_consonant_y(stem):
        return f"{stem[:-1]}ies"
    return stem + ("es" if stem.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def with_vowel(stem: str, ending: str) -> str:
    """A stem with an ending that begins with a vowel; a ``+`` at the end of the stem doubles."""
    if stem.endswith("+"):
        return stem[:-1] + stem[-2] + ending
    if stem.endswith("e"):
        return stem[:-1] + ending
    if ends_in_consonant_y(stem) and not ending.startswith("i"):
        return f"{stem[:-1]}i{ending}"
    return stem + ending


def with_consonant(stem: str, ending: str) -> str:
    """A stem with ``ly`` or ``ness``."""
    if ends_in_consonant_y(stem):
        return f"{stem[:-1]}i{ending}"
    if ending == "ly" and stem.endswith("le") and stem[-3] not in VOWELS:
        return f"{stem[:-2]}ly"
    return stem + ending


def lexicon() -> dict[str, list[str]]:
    """All words, by the rule that they are productions of."""
    verbs = [prefix + stem for prefix in PREFIXES for stem in VERBS.split()]
    adjectives = [prefix + stem for prefix in ("", "un") for stem in ADJECTIVES.split()]
    nouns = [
        *(NOUNS + " " + FIRSTS + " " + SECONDS).split(),
        *(first + second for first in FIRSTS.split() for second in SECONDS.split()),
        *(with_vowel(stem, "er") for stem in verbs),
        *(with_consonant(stem, "ness") for stem in adjectives),
    ]
    able = [with_vowel(stem, "able") for stem in VERBS.split()]
    tens = [f"{ten}-{one}" for ten in TENS.split() for one in ONES.split()]
    words: dict[str, Iterable[str]] = {
        "be_sg": BE_SG.split(),
        "be_pl": BE_PL.split(),
        "modal": MODALS.split(),
        "coordinator": COORDINATORS.split(),
        "subordinator": SUBORDINATORS.split(),
        "relative": RELATIVES.split(),
        "determiner": DETERMINERS.split(),
        "determiner_sg": DETERMINERS_SG.split(),
        "determiner_pl": DETERMINERS_PL.split(),
        "preposition": PREPOSITIONS.split(),
        "number": [*ONES.split(), *TEENS.split(), *TENS.split(), *tens],
        "name": NAMES.split(),
        "adverb": [*ADVERBS.split(), *(with_consonant(stem, "ly") for stem in adjectives)],
        "adjective": [*adjectives, *able, *(f"un{word}" for word in able)],
        "noun_sg": nouns,
        "noun_pl": map(with_s, nouns),
        "verb": (stem.rstrip("+") for stem in verbs),
        "verb_s": (with_s(stem.rstrip("+")) for stem in verbs),
        "verb_ed": (with_vowel(stem, "ed") for stem in verbs),
        "verb_ing": (with_vowel(stem, "ing") for stem in verbs),
    }
    return {rule: list(dict.fromkeys(of)) for rule, of in words.items()}


def grammar() -> str:
    """The text of phrases.gbnf."""
    words = lexicon()
    rules = []
    for rule, of in words.items():
        lines = [f"{rule} ::="]
        for number, word in enumerate(of):
            choice = f' | "{word}"' if number else f' "{word}"'
            if len(lines[-1] + choice) > WIDTH:
                lines.append(" ")
            lines[-1] += choice
        rules.append("\n".join(lines))
    count = sum(map(len, words.values()))
    return HEAD.replace("{count}", f"{count:,}") + "\n".join(rules) + "\n"


if __name__ == "__main__":
    print(grammar(), end="")
