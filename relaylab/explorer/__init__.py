"""The explorer without a screen: a session answers questions about a pipeline as plain data; its run in one picture."""

from relaylab.explorer import questions
from relaylab.explorer.heat import Heat, heat
from relaylab.explorer.narration import in_words
from relaylab.explorer.question import QUESTIONS, Question, question
from relaylab.explorer.session import Session

__all__ = ["QUESTIONS", "Heat", "Question", "Session", "heat", "in_words", "question", "questions"]
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
