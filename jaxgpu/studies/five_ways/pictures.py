"""The figure of the study. matplotlib is imported where it is needed."""

from typing import Any

import numpy as np

from jaxgpu.report.palette import BAND, GREY, PURPLE, colours, styled

from .slopes import WINDOWS


@styled
def drawn(scores: dict[str, np.ndarray], agreement: dict[str, np.ndarray], episodes: int) -> Any:
    """Returns over episodes, and the agreement of derivatives over the length of the window."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(
        1, 2, figsize=(9.2, 3.4), gridspec_kw={"width_ratios": (3, 2)}
    )
    for name, colour in colours(list(scores)).items():
        score = scores[name]
        x = np.linspace(0, episodes, len(score))
        left.plot(x, np.median(score, 1), color=colour, label=name)
        if score.shape[1] > 1:
            left.fill_between(x, score.min(1), score.max(1), color=colour, alpha=BAND, lw=0)
    left.axhline(0, color=GREY, lw=0.8, ls=":")
    left.set(xlabel="simulated episodes", ylabel="return")
    left.legend(ncols=2)
    cosine = agreement["cosine"]
    right.plot(WINDOWS, np.median(cosine, 1), "o-", ms=4, color=PURPLE)
    if cosine.shape[1] > 1:
        right.fill_between(WINDOWS, cosine.min(1), cosine.max(1), color=PURPLE, alpha=BAND, lw=0)
    right.axhline(0, color=GREY, lw=0.8, ls=":")
    right.set(xlabel="frames of the window", ylabel="cosine of derivatives nearby", ylim=(-1, 1.05))
    return drawing
