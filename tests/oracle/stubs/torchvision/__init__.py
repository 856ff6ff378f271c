"""Import-only torchvision: SGLang's multimodal processors name its transforms at import time."""

from import_only import stand_in

__version__ = "0.28.0"
stand_in(__name__)
