"""The verifier of constraints: outcomes, modes, groups, and the formats of published datasets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import verified_by
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.sandbox.workers import ProcessorTimeError, ProcessPool
from bestofn.verifiers.constraints import ConstraintsVerifier
from bestofn.verifiers.constraints.catalogue import CHECKS, UndecidedError
from bestofn.verifiers.constraints.languages import language_of
from bestofn.verifiers.constraints.specs import SpecError, read_constraints
from bestofn.verifiers.constraints.texts import sentences
from bestofn.verifiers.constraints.verifier import QUICK
from tests.growth import assert_linear

SHORT, NO_COMMA, UNKNOWN = {"id": "words", "max": 3}, {"id": "punctuation:no_comma"}, {"id": "rhymes:all"}


def verdict(text: str, *constraints: object, mode: str = "strict") -> Verdict:
    query = Query(
        "q", "", ({"role": "user", "content": "?"},), reference=Reference(checks={"constraints": constraints})
    )
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    return asyncio.run(ConstraintsVerifier(mode).verify(query, candidate))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "constraints", "outcome"),
    [
        ("one two", [SHORT, NO_COMMA], "pass"),
        ("one, two", [SHORT, NO_COMMA], "fail"),
        ("one two", [SHORT, UNKNOWN], "abstain"),
        ("one, two", [NO_COMMA, UNKNOWN], "fail"),
        (" ", [SHORT], "fail"),
        ("one", [], "abstain"),
        ("one", [3], "abstain"),
        ("x" * 100_001, [SHORT], "abstain"),
    ],
)
def test_one_broken_constraint_fails_and_an_unknown_one_does_not_pass(
    text: str, constraints: list, outcome: str
) -> None:
    found = verdict(text, *constraints)
    assert found.outcome == outcome
    assert found.explanation


def test_the_detail_names_each_constraint() -> None:
    found = verdict("one, two", SHORT, NO_COMMA, UNKNOWN)
    assert [entry["kept"] for entry in found.detail["constraints"]] == [True, False, None]
    assert (found.detail["rule"], found.detail["kept_share"]) == ("punctuation:no_comma", 1 / 3)
    assert found.explanation == "punctuation:no_comma: 1 commas"


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("Sure, here it is:\none two", NO_COMMA),
        ("one two\nHope that helps, bye!", NO_COMMA),
        ("Sure, here:\none two\nBye, bye", NO_COMMA),
        ("**one**", {"id": "counts", "text": "*", "exactly": 0}),
    ],
)
def test_the_loose_mode_forgives_the_frame_of_an_answer(text: str, constraint: dict) -> None:
    assert verdict(text, constraint).outcome == "fail"
    assert verdict(text, constraint, mode="loose").outcome == "pass"


@pytest.mark.parametrize(
    ("text", "constraint", "outcome"),
    [
        ("one, two", {"any": [NO_COMMA, SHORT]}, "pass"),
        ("one, two", {"all": [NO_COMMA, SHORT]}, "fail"),
        ("one, two", {"none": [NO_COMMA]}, "pass"),
        ("one two", {"none": [NO_COMMA]}, "fail"),
        ("one two", {"any": [UNKNOWN, NO_COMMA]}, "pass"),
        ("one, two", {"any": [UNKNOWN, NO_COMMA]}, "abstain"),
        ("one, two", {"all": [UNKNOWN, NO_COMMA]}, "fail"),
        ("one two", {"none": [UNKNOWN]}, "abstain"),
        ("one two", {"all": [{"any": [SHORT, UNKNOWN]}, {"none": [UNKNOWN, NO_COMMA]}]}, "fail"),
    ],
)
def test_groups_combine_constraints(text: str, constraint: dict, outcome: str) -> None:
    assert verdict(text, constraint).outcome == outcome


COLUMNS = {"instruction_id_list": ["ja:punctuation:no_comma", "words"], "kwargs": [{"x": None}, {"max": 3.0}]}


@pytest.mark.parametrize(
    "value",
    [
        COLUMNS,
        [COLUMNS],
        [COLUMNS["instruction_id_list"], COLUMNS["kwargs"]],
        '{"instruction_id": ["ja:punctuation:no_comma", "words"], "kwargs": [null, {"max": 3}]}',
        "[{'instruction_id': ['ja:punctuation:no_comma', 'words'], 'kwargs': [None, {'max': 3}]}]",
        [{"id": "ja:punctuation:no_comma"}, {"id": "words", "max": 3}],
        [{"id": "ja:punctuation:no_comma", "kwargs": {}}, {"id": "words", "kwargs": '{"max": 3}'}],
        ["ja:punctuation:no_comma", {"id": "words", "max": 3}],
    ],
)
def test_the_forms_of_the_datasets_mean_the_same(value: object) -> None:
    found = read_constraints(value)
    assert [(one.language, one.id) for one in found] == [("ja", "punctuation:no_comma"), ("en", "words")]
    assert found[1].arguments == {"max": 3}


@pytest.mark.parametrize(
    "value",
    [
        "no JSON",
        3,
        [3],
        [{"words": 3}],
        {"instruction_id_list": ["a", "b"], "kwargs": [{}]},
        [{"id": "a", "kwargs": 3}],
        [{"all": []}],
        [{"none": []}],
    ],
)
def test_constraints_that_cannot_be_read_are_refused(value: object) -> None:
    with pytest.raises(SpecError):
        read_constraints(value)
    query = Query("q", "", (), reference=Reference(checks={"constraints": value}))
    assert verified_by(ConstraintsVerifier(), query) == ""


def test_a_function_of_tulu_is_a_constraint() -> None:
    row = {"func_name": "validate_word_constraint", "N": 2, "quantifier": "at least", "keyword": None}
    assert verdict("one two", row).outcome == "pass"
    assert verdict("one", row).outcome == "fail"
    assert verdict("one", {"func_name": "validate_rhymes", "N": 2}).outcome == "abstain"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected strict or loose"):
        ConstraintsVerifier("lax")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Smith met Mr. J. Doe at 5 p.m. in the U.S. embassy.", 1),
        ("It works. e.g. this does. Really?! Yes!", 4),
        ('He said "No." Then he left.', 2),
        ("Wait... what is it? It is 3.5 km.", 2),
        ("1. One thing.\n2. Another thing.", 4),
        ("no mark at all", 1),
        ("", 0),
    ],
)
def test_sentences_are_counted_as_a_reader_does(text: str, count: int) -> None:
    assert len(sentences(text)) == count


@given(st.text())
def test_no_text_is_lost_between_sentences(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The weather is nice and we are going to the park with the children."),
        ("de", "Das Wetter ist schön und wir gehen mit den Kindern in den Park."),
        ("fr", "Le temps est beau et nous allons au parc avec les enfants."),
        ("es", "El tiempo es bueno y vamos al parque con los niños."),
        ("it", "Il tempo è bello e andiamo al parco con i bambini della scuola."),
        ("pt", "O tempo está bom e nós vamos ao parque com as crianças, mas não hoje."),
        ("nl", "Het weer is mooi en we gaan met de kinderen naar het park."),
        ("ru", "Погода хорошая, и мы идём в парк с детьми."),
        ("uk", "Погода гарна, і ми йдемо до парку з дітьми, але не зараз."),
        ("ar", "الطقس جميل و نحن نذهب إلى الحديقة مع الأطفال في المدينة."),
        ("hi", "मौसम अच्छा है और हम बच्चों के साथ पार्क में जा रहे हैं।"),
        ("vi", "Thời tiết đẹp và chúng tôi đi đến công viên với các em nhỏ."),
        ("sw", "Hali ya hewa ni nzuri na sisi tunaenda katika bustani kwa watoto."),
        ("fi", "Sää on kaunis ja me menemme puistoon, mutta se ei ole vielä kesä."),
        ("tr", "Hava çok güzel ve biz çocuklar ile parka gidiyoruz ama bu değil."),
        ("ja", "天気がいいので公園に行きます。"),
        ("zh", "天气很好，我们去公园。"),
        ("ko", "날씨가 좋아서 공원에 갑니다."),
        ("el", "Ο καιρός είναι καλός."),
        ("th", "อากาศดีมาก"),
        ("", "12345 !?"),
    ],
)
def test_languages_are_detected(language: str, text: str) -> None:
    assert language_of(text) == language


def test_a_long_response_is_checked_in_a_worker_process_with_a_limit_on_its_time() -> None:
    query = Query("q", "", (), reference=Reference(checks={"constraints": [SHORT]}))
    candidate = Candidate(0, ({"role": "assistant", "content": "word " * (QUICK // 5 + 1)},))

    class Workers:
        raises: Exception | None = None

        async def call(
            self, function: Callable[..., object], *args: object, timeout_s: float, **limits: object
        ) -> object:
            if self.raises:
                raise self.raises
            return function(*args)

    workers = Workers()
    outcomes = []
    for workers.raises in (None, ProcessorTimeError(), MemoryError()):
        verifier = ConstraintsVerifier(workers=workers)  # type: ignore[arg-type]
        outcomes.append(asyncio.run(verifier.verify(query, candidate)).outcome)
    assert outcomes == ["fail", "abstain", "abstain"]
    assert asyncio.run(ConstraintsVerifier().verify(query, candidate)).outcome == "abstain"


def test_a_long_response_passes_in_a_real_worker() -> None:
    query = Query("q", "", (), reference=Reference(checks={"constraints": [{"id": "words", "min": QUICK // 5}]}))
    candidate = Candidate(0, ({"role": "assistant", "content": "word " * (QUICK // 5 + 1)},))

    async def verified() -> Verdict:
        async with ProcessPool(count=1) as workers:
            return await ConstraintsVerifier(workers=workers).verify(query, candidate)

    assert asyncio.run(verified()).outcome == "pass"


@pytest.mark.parametrize("piece", ["<", "<<a ", "<<a b>> ", ". ", "a ", '"', "*", "- a\n"])
def test_the_time_of_every_check_without_arguments_grows_linearly(piece: str) -> None:
    checks = [check for check in CHECKS.values() if len(inspect.signature(check).parameters) == 1]
    assert_linear(lambda text: [outcome_of_check(check, text) for check in checks], piece, QUICK)


def outcome_of_check(check: Callable[[str], str], text: str) -> bool | None:
    try:
        return not check(text)
    except UndecidedError:
        return None


@pytest.mark.parametrize(
    "text",
    [
        "你好。我很好！他来了吗？",
        "今日は晴れです。雨です。「風です。」と言った！",
        "今日は晴れです。明日は雨です！本当ですか？",
        "مرحبا. كيف حالك؟ أنا بخير!",
        "यह पहला है। यह दूसरा है। क्या तीसरा है?",
        "یہ پہلا ہے۔ یہ دوسرا ہے۔ یہ تیسرا ہے۔",
    ],
)
def test_sentences_of_other_scripts_end_at_their_marks(text: str) -> None:
    assert len(sentences(text)) == 3
    assert verdict(text, {"id": "sentences", "exactly": 3}).outcome == "pass"


@pytest.mark.parametrize("text", ["今日は晴れです。", "我很好，谢谢你。", "สวัสดีครับ"])
@pytest.mark.parametrize(
    "constraint",
    [
        {"id": "words", "min": 50},
        {"id": "length_constraints:number_words", "num_words": 50, "relation": "at least"},
        {"id": "count:word_count_range", "min_words": 50, "max_words": 60},
    ],
    ids=lambda constraint: constraint["id"],
)
def test_words_of_a_script_without_spaces_are_not_counted(text: str, constraint: dict) -> None:
    assert verdict(text, constraint).outcome == "abstain"
    assert verdict("한국어는 낱말을 띄어 씁니다 " * 20, constraint).outcome != "abstain"
    assert (
        verdict(f"The word {text[:2]} is Japanese or Chinese, and this English text counts.", constraint).outcome
        == "fail"
    )
