"""A model's config.json and the parallel sizes to the device pools of each stage; one file a family of models.

May import core and arguments, nothing above. Raises nothing for a person's mistake: findings come back.
"""
