"""Messages of failed calls, completeness of the registry, and errors that its rules must detect."""

import dataclasses
import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api_cases import ApiCase, assert_clear_refusal, attacks, check_attack
from registry import CASES, TABLE_OF
from steppers import STEPPERS

import jaxgpu
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.inputs.ranges import RANGE_KEY, check, numbers


@pytree
class Rule:
    rate: float = number(1.0, above=0, most=2)


def checked_sum(rule, x):
    check("checked_sum", rule)
    return rule.rate * numbers("checked_sum: x", x, ("N",)).sum()


def unchecked_sum(rule, x):
    return rule.rate * np.nansum(x)


def raw_sum(rule, x):
    return rule.rate * np.linalg.inv(np.asarray(x, float)).sum()


def test_the_walk_catches_silence_and_foreign_errors():
    arguments = {"rule": Rule(), "x": np.array([1.0, 2.0])}
    right = ("x: zero", "x: negative", "x: wrong length", "x: empty")

    def faults(f):
        return [
            a.name
            for a in attacks(ApiCase(f.__name__, f, arguments, right))
            if not _is_accepted(f, a)
        ]

    def _is_accepted(f, attack):
        try:
            check_attack(ApiCase(f.__name__, f, arguments, right), attack)
        except AssertionError:
            return False
        return True

    assert faults(checked_sum) == []
    assert {"rule.rate: nan", "rule.rate: negative", "x: nan"} <= set(faults(unchecked_sum))
    assert len(faults(raw_sum)) > 5


def test_a_sentence_is_known_by_its_form():
    def fault(text):
        try:
            numbers(text, np.nan)
        except ValueError as error:
            assert_clear_refusal(error)

    fault("f: x")
    for text in ("no form at all", "f: a\nb; c"):
        with pytest.raises(AssertionError, match="sentence"):
            fault(text)
    with pytest.raises(AssertionError, match="raised in"):
        try:
            np.linalg.inv(np.zeros((2, 3)))
        except ValueError as error:
            assert_clear_refusal(error)


@explain_errors
def sine_pull(rule: Rule, x: jax.Array, by: Callable[[float], float] | None = None) -> jax.Array:
    return rule.rate * jnp.sin(x) * (1.0 if by is None else by(1.0))


WRONG = [
    ({"rule": 3}, "rule=3; it must be a Rule"),
    ({"rule": Rule("fast")}, "Rule.rate='fast'; it must be a finite number"),
    ({"x": "fast"}, "x='fast'; it must be a number or an array of numbers"),
    ({"by": 3}, "by=3; it must be a function or None"),
    ({"by": lambda: 1.0}, "by=a function that cannot be called with 1 arguments"),
]


@pytest.mark.parametrize("given, sentence", WRONG)
def test_a_function_that_fails_names_the_argument(given, sentence):
    with pytest.raises((TypeError, ValueError), match=f"sine_pull: .*{sentence}") as caught:
        sine_pull(**{"rule": Rule(), "x": jnp.ones(2)} | given)
    assert caught.value.__cause__ is not None


def test_an_error_of_the_user_passes_as_it_is():
    def raise_error(a):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sine_pull(Rule(), jnp.ones(2), raise_error)


JOINED = """
def joined(x, y, by=None):
    return x + y if by is None else by(x)
"""


def function_in(file):
    """Return a new function whose errors show `file` as the file of its code."""
    names = {"__name__": "made"}
    exec(compile(JOINED, str(file), "exec"), names)
    return explain_errors(names["joined"])


def test_errors_of_libraries_are_explained_within_the_package_and_no_others():
    """Errors from a file next to the package, or from a user's function, stay unchanged."""
    home = Path(jaxgpu.__file__).parent
    ours = [function_in(home / name) for name in ("made.py", "geometry/made.py")]
    users = [function_in(folder / "made.py") for folder in (home.parent, home.parent / "notebooks")]
    apart = np.ones(2), np.ones(3)
    shapes = r"x float64\[2\], y float64\[3\]; compare their shapes with .* \(ValueError, operands"
    for f in ours:
        with pytest.raises(ValueError, match=f"^joined: cannot be computed from {shapes}"):
            f(*apart)
    for f in users:
        with pytest.raises(ValueError, match="^operands could not be broadcast"):
            f(*apart)
    for f in ours:
        with pytest.raises(ValueError, match="^operands could not be broadcast"):
            f(*apart, lambda x: x + apart[1])


def modules():
    walk = pkgutil.walk_packages(jaxgpu.__path__, "jaxgpu.")
    return [importlib.import_module(module.name) for module in walk]


def specs():
    """Yield every pytree class of the package."""
    for module in modules():
        for name, cls in inspect.getmembers(module, inspect.isclass):
            ours = cls.__module__ == module.__name__ and dataclasses.is_dataclass(cls)
            if ours and name[0] != "_" and not cls.__dataclass_params__.eq:
                yield cls


def test_every_number_that_users_set_declares_its_range():
    """Users set fields of type `float` and static `int`; states hold arrays instead."""

    def is_users_field(field):
        kind = str(field.type)
        sized = field.metadata.get("static") and re.search(r"\bint\b", kind)
        return (sized or re.search(r"\bfloat\b", kind)) and "tuple" not in kind

    bare = [
        f"{cls.__module__}.{cls.__qualname__}.{field.name}"
        for cls in specs()
        for field in dataclasses.fields(cls)
        if is_users_field(field) and RANGE_KEY not in field.metadata
    ]
    assert not bare, "\n".join(["no range:", *bare])


# Public names without an entry in the registry, by the reason.
NO_CASE = {
    "a type of what comes back, made by a door": """Solution Evolution MixtureFit State Particles
        Scores Step GradientHealth Outcome BestPlan Plan VolumeEstimate Tree Tool SourceCounts
        PlasticState RecurrentPolicy LearnedPolicy GraspState Run Timing Training TrainState
        VectorState""".split(),
    "parts of kernels, which check nothing, and modules of them": """rotations rows vectors sdf
        rays sockets solids threads primitive fill_zeros is_constant jvp_of export_checks
        gpu_takes_kernels on_gpu on_tpu load_row broadcast_like window program_id run_when
        safe_tiny""".split(),
    "files of the extra `mesh`, held to values by tests of its own": ["voxelize"],
    "what a door of clusters makes or takes, and a number": """Escapes Tracers Pair Pairs Budget
        Elements MassFunction PLUMMER_RADIUS""".split(),
    "parts of a `rigid.Model`, which its cases look at": """Actuators Bodies Contacts Equalities
        Dofs Geoms Joints Mechanism Option Sites Tendons update_invweight solve""".split(),
    "what tasks on robots share": ["Robot"],
    "parts of a `touch.Grasp`, which its cases look at": ["Fixture", "Part"],
    "parts of tasks in houses, which `vectorize` looks at": """House Objects Surfaces
        Episodes""".split(),
    "trees held to SciPy's by tests of their own": "segregation_ratio tree_edges".split(),
    "an error": "CheckpointError ReportError".split(),
    "fields that `report.save` checks, a bound that `pytree.number` takes": """Figure Report
        Range""".split(),
    "any tree is right": "is_key scope".split(),
    "of calls from outside of `jit`, which go through every door": """defer_check can_check
        CompiledFunction is_explained on_host keeps_64_bits keeps_64_bits_of_specs""".split(),
    "walks over functions and objects, of which any is right": """find_reads code_contents
        operations describe digest nodes is_fixed tracing""".split(),
    "no argument, or words of our own code": """environment reassociation import_extras static
        seeds_caption platform options describe compiler_flags cores processor""".split(),
    "parts of `run`, which checks what they are given": """Store Interrupt program_digest
        arrays_digest find_equal find_equal_form call_fresh fresh_traces call_as_program
        sharding_group Call Program Loop device_copy measure_nothing options_of place_operands
        result_sharding Group Watchdog is_leader place spans blocks save_parts sync named
        call_checked check_space refuse_changed""".split(),
    "the checks themselves, which the cases of the core use": """word path function flag key arrays
        mark_step format_value check_finite""".split(),
    "what is said of an argument that is wrong, held by tests below": """explain_errors find_error
        requirement hints required_arity arity_message check_arity""".split(),
    "errors of the disk are the system's": "replace_file lock_folder remove_scratch".split(),
    "the command line, held to its words by tests of its own": """main list_ watch_ report_ info
        cite run_study""".split(),
    "a protocol, a base class or a kind": """Algorithm Material Learner Environment MatterTask Goal
        Planner PickPlace ContactTask TouchTask HouseTask CarryTask DynamicCarry Policy
        RolloutLearner Space""".split(),
    "without a number of its own": """Boolean Discrete names register zdt5 Arm ECM PSM STAR
        BoxType""".split(),
    "held to values by tests of its own": """distributed minimize Categorical Permutation
        ReferenceDirections contributions Link Drive Simulation from_mjcf make Vector examine
        count_lost p2g g2p ParticleStyle KnapsackData nearest_star check_points mp4 video view
        fetch_episodes grasp_episodes visit_episodes""".split(),
    "files and programs of others": """from_brax from_gymnax register_gymnasium to_gymnasium
        to_gymnasium_vector""".split(),
    "a program over what a door has checked": """learn reset cost EpisodeCost trajectory
        discount_gradient average_gradient initial_states plan_from_each evaluate_plans
        standard_planners interquartile_mean with_soft_contact forward_kinematics frame_origins
        inverse_kinematics""".split(),
    "tasks whose ranges stand on their fields, held by `rl.vectorize`": """GatherGoal MatchGoal
        PourGoal SpreadGoal TransportGoal BoxWorkspace CylinderWorkspace Unbounded ArmDynamics
        GymArm gathering ice_cream latte_art mixing pouring transporting""".split(),
    "diagnostics of a state that a run has made": """bound_pairs budget class_radii core mean
        potential segregation_ratio tree_edges""".split(),
    "modules of flax, whose fields flax takes as they are": "CNN MLP ResNet".split(),
    "asked for by our own code": """extra fill_zeros is_constant jvp_of primitive own
        measure_nothing""".split(),
    "held to values by other tests": """weld checked remove_scratch Elements MassFunction Solid
        Balls RolloutLearner ArmDynamics EpisodeCost count_lost ReferenceDirections Call
        Loop""".split(),
}


def is_result(thing):
    """Return True for a constant or a type without numbers that users set, e.g. of a result."""
    if not isinstance(thing, type):
        return not callable(thing)  # a module, a constant
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    numbers = any(RANGE_KEY in field.metadata for field in fields)
    return not numbers and (issubclass(thing, Exception | tuple) or bool(fields) or is_form(thing))


def is_form(thing):
    """Return True for a protocol or an abstract base class."""
    return inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)


def public(module):
    """Return the names in a package's `__all__`, or the public callables of a core module."""
    folder, depth = module.__name__.split(".")[1:2], module.__name__.count(".")
    in_core = depth < 2 or depth == 2 and folder[0] in ("inputs", "devices", "runs")
    if hasattr(module, "__all__") or not in_core or hasattr(module, "__path__"):
        return getattr(module, "__all__", ())
    is_own = lambda thing: getattr(thing, "__module__", None) == module.__name__
    made = [name for name, thing in vars(module).items() if callable(thing) and is_own(thing)]
    return [name for name in made if name[0] != "_"]


def to_add(name):
    """Return the missing line, and the file and the most similar entry where it belongs."""
    likeness = lambda door: (len(os.path.commonprefix([door, name])), -len(door))
    beside, file = max(TABLE_OF.items(), key=lambda row: likeness(row[0]))
    line = f'ApiCase("{name}", {name.rpartition(".")[2]}, {{"argument": value, ...}})'
    return f'{name}: add to tests/helpers/{file}.py, beside "{beside}": {line}'


def test_every_public_name_has_a_case():
    """Every public name has an entry, is tested as a stepper, or takes no values."""
    spared = {name for names in NO_CASE.values() for name in names}
    said = " ".join(door.name for door in CASES)
    said += " " + " ".join(kind.__name__ for machine in STEPPERS for kind in machine.covers)
    missing = [
        to_add(f"{module.__name__.removeprefix('jaxgpu.')}.{name}")
        for module in modules()
        if ".studies" not in module.__name__
        for name in public(module)
        if name not in spared
        and not is_result(getattr(module, name))
        and not re.search(rf"\b{name}\b", said)
    ]
    why = "no case; a name without values of its own goes to NO_CASE of tests/core/test_doors.py"
    assert not missing, "\n".join([why, *missing])


# These classes have a method of a protocol but no stepper test; tests of their own step them.
NO_STEPPER = {
    "goes by a spec that is one": ["Cluster", "CheckedEnv", "Vector"],
    "what tasks on robots share, each of which is one": ["Robot"],
    "what tasks of touch share, each of which is one": ["TouchTask"],
    "planners, whose `update` takes an objective": [
        "CEM",
        "MPPI",
        "Descent",
        "TemporalExpansion",
        "BestPlan",
    ],
    "objectives, whose `update` takes what candidates saw": ["NoisyFunction", "PolicyObjective"],
}


def test_every_class_that_steps_has_a_stepper():
    spared = {name for names in NO_STEPPER.values() for name in names}
    covered = {kind for machine in STEPPERS for kind in machine.covers}
    missing = {
        f"{module.__name__}.{name}: add to STEPPERS of tests/helpers/steppers.py: "
        f'Stepper("{name}", ({name},), make), where make(dtype) gives init(key) and '
        "step(state, key); a material goes to MATERIALS of tests/helpers/cases_continuum.py, an "
        "algorithm to ALGORITHMS of steppers.py, a learner to LEARNERS of rl_learners.py, and an "
        "environment is registered by rl.register"
        for module in modules()
        if ".studies" not in module.__name__
        for name in public(module)
        if isinstance(kind := getattr(module, name), type) and not is_form(kind)
        if any(callable(getattr(kind, word, None)) for word in ("tell", "reset", "update", "step"))
        if kind not in covered and name not in spared
    }
    why = "no stepper; what is stepped otherwise goes to NO_STEPPER of tests/core/test_doors.py"
    assert not missing, "\n".join([why, *sorted(missing)])
