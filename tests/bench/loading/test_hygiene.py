from crag.bench.examples import Example
from crag.bench.loading.hygiene import seen_in_training


def example(question: str, *titles: str) -> Example:
    return Example(question, "popqa", question, (("x",),), gold_titles=titles)


def test_questions_and_subjects_of_training_are_found() -> None:
    asked = example("What is Ada's job?", "Ada")
    known = example("Where was Bob born?", "Bob (singer)")
    fresh = example("Who is Cy?", "Cy")
    found = seen_in_training(
        [asked, known, fresh], ["what is  ADA's job"], titles=["bob singer", "Cyrus"]
    )
    assert found == [asked, known]


def test_nothing_was_trained_on() -> None:
    assert seen_in_training([example("Who?", "A")], []) == []
