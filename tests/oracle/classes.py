"""Every model class in a few arrangements through the real SGLang: the cases of class_cases.py, as special.py runs them.

python tools/oracle.py run classes.py [CASES.jsonl] > RESULTS.jsonl
"""

from __future__ import annotations

import sys

import special

if __name__ == "__main__":
    sys.exit(special.main())
