"""The neutral graph view of a program: its boxes, their identity, and facts about them."""
