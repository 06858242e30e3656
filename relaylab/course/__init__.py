"""The course: lessons as files of Markdown, exercises that judge their answers, and how far a learner is.

A lesson is one file of `relaylab/course/lessons`; its notebook is made of it by `python docs/generate.py course`.
"""

from relaylab.course.judge import Verdict, check, hint, solution
from relaylab.course.lesson import CourseLesson, Exercise, LessonCell, exercise, lesson, lessons
from relaylab.course.pictures import Grids, grids, visits
from relaylab.course.predicting import PictureQuestion, question
from relaylab.course.programs import attention, block, classifier, shipped, two_convolutions, weights
from relaylab.course.progress import Progress, progress
from relaylab.course.translation import speak, spoken

__all__ = [
    "CourseLesson", "Exercise", "Grids", "LessonCell", "PictureQuestion", "Progress", "Verdict", "attention", "block",
    "check", "classifier", "exercise", "grids", "hint", "lesson", "lessons", "progress", "question", "shipped",
    "solution", "speak", "spoken", "two_convolutions", "visits", "weights",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)
