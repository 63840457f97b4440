"""Trajectory optimization: action sequences found by gradients or by sampling.

loss = EpisodeCost(env, state, gradient_discount=0.9) found = plan(loss, env.initial_actions(),
Descent(optax.adam(0.05)), 30, key=key)   # CEM(), MPPI() found.actions, found.loss

Read `objective` (cost of an action sequence and its gradient), then the planners in `gradient` and
`sampling`, then `planning` (the function `plan`) and `comparison` (many states, several planners).
A planner is a spec with `init(actions)` and `update(loss, state, key)`.
"""

from .comparison import evaluate_plans, initial_states, plan_from_each, standard_planners
from .gradient import Descent, TemporalExpansion
from .objective import (
    BestPlan,
    EpisodeCost,
    average_gradient,
    cost,
    discount_gradient,
    trajectory,
)
from .planning import Plan, Planner, plan
from .sampling import CEM, MPPI

__all__ = [
    "CEM",
    "MPPI",
    "BestPlan",
    "Descent",
    "EpisodeCost",
    "Plan",
    "Planner",
    "TemporalExpansion",
    "average_gradient",
    "cost",
    "discount_gradient",
    "evaluate_plans",
    "initial_states",
    "plan",
    "plan_from_each",
    "standard_planners",
    "trajectory",
]
