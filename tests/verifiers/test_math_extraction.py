"""The final answer that is extracted from the whole text of a message."""

import pytest

from bestofn.verifiers.math_verifier import final_answer

CASES = [
    # boxes
    (r"So \boxed{42}.", "42"),
    (r"First \boxed{1}, but then it is \boxed{2}.", "2"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    (r"\boxed{\text{(C)}}", r"\text{(C)}"),
    (r"\fbox{7}", "7"),
    (r"\boxed 5", "5"),
    (r"$\boxed{x^{2}+\sqrt{y_{1}}}$ is it", r"x^{2}+\sqrt{y_{1}}"),
    (r"\boxed{\boxed{3}}", "3"),
    (r"\boxed{10} is the answer, since 10 = 5 \cdot 2", "10"),
    (r"We get \boxed{}. So the answer is 4.", "4"),
    (r"The box \boxed{12", "12"),
    ("\\boxed{9}\nWait, that counts twice.\nThe answer is 8.", "8"),
    ("\\boxed{56}.\nFinal Answer: The final answer is $56$. I hope it is correct.", "$56$"),
    (r"\boxed{4} The answer is correct.", "4"),
    # structured answers
    ('{"reasoning": "3 + 4 = 7", "answer": "7"}', "7"),
    ('```json\n{"reasoning": "...", "answer": 7}\n```', "7"),
    ('{"reasoning": "...", "answer": "$1,200"}', "$1,200"),
    ('{"answer": "\\\\frac{1}{2}"}', r"\frac{1}{2}"),
    ('{"answer": "\\frac{1}{2}"}', r"\frac{1}{2}"),
    ('{"answer": "3 \\times 4"}', r"3 \times 4"),
    ('{"answer": ["1", "2"]}', "1, 2"),
    ('{"answer": [1, 2, 3]}', "1, 2, 3"),
    ('{"answer": {"total": 52}}', "52"),
    ('{"answer": "He said \\"five\\""}', 'He said "five"'),
    ('{"final_answer": "x = 3"}', "x = 3"),
    ('{"reasoning": "broken", "answer": "12 apples', "12 apples"),
    ('{"reasoning": "a \\"answer\\" b", "answer": "9"}', "9"),
    ("{'answer': '17'}", "17"),
    ('{"answer": "Infinitely many"}', "Infinitely many"),
    # announced answers
    ("Step 1: 3. Step 2: 4. The answer is 12.", "12"),
    ("The final answer is: 12", "12"),
    ("Therefore, the answer is $\\frac{3}{4}$.", r"$\frac{3}{4}$"),
    ("The answer is 3.5.", "3.5"),
    ("The answer is 1,234.", "1,234"),
    ("**Answer:** 18", "18"),
    ("**Final Answer:** Therefore, the answer is 2.5. ", "2.5"),
    ("Answer: (B)", "(B)"),
    ("the correct answer is (C) 12 cm.", "(C) 12 cm"),
    ("The answer to the question is 8.", "8"),
    ("The answer is 6.\nThe answer is 6.\nTh", "6"),
    ("The answer is 362,880.\nThe answer is 362,8", "362,880"),
    ("The answer is 3025.\nThis answer is corr", "3025"),
    ("The answer is:\n\n$$\\frac{1}{2}$$", r"\frac{1}{2}"),
    ("The answer is:\n\\[ x = 4 \\]", "x = 4"),
    ("The answer is True.", "True"),
    ("So the answer is no solution.", "no solution"),
    ("The answer is [4, 1, 2, 0].", "[4, 1, 2, 0]"),
    ("The final answer would be -7.", "-7"),
    ("The answer is $26$ dollars.\nI hope it helps.", "$26$ dollars"),
    # marks and final lines
    ("He has 3 + 4 = <<3+4=7>>7 apples.\n#### 7", "7"),
    ("He runs 180 x 3 = <<180*3=540>>540 meters a week\nA: 540", "540"),
    ("### 1. Think\n#### Total Calculations:\nThe answer is 5.", "5"),
    ("She adds them up.\n\n**30**", "30"),
    ("She adds them up.\n\nSo there are **30 eggs**.", "30 eggs"),
    ("42", "42"),
    ("x = 3", "x = 3"),
    (r"$\frac{2}{3}$", r"$\frac{2}{3}$"),
    # thinking, turns, invented problems
    (r"<think>\boxed{1}</think>\boxed{2}", "2"),
    (r"<think>The answer is 1.</think>The answer is 2.", "2"),
    (r"The answer is 1.</think>The answer is 2.", "2"),
    (r"<think>I never came to an end \boxed{3}", ""),
    ("The answer is 4.<|im_end|>\n<|im_start|>user\nThe answer is 5.", "4"),
    ("The answer is 4.<|eot_id|>assistant The answer is 6.", "4"),
    ("#### 9\n\nQuestion: What is 1 + 1?\n#### 2", "9"),
    ("The answer is 4.\n\n## Question:\nWhat else?", "4"),
    # nothing
    ("", ""),
    ("   \n ", ""),
    ("<think>hm</think>", ""),
]


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_final_answer(text, answer):
    assert final_answer(text).text == answer


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 60


def test_boxes_side_by_side_are_kept_together():
    answer = final_answer(r"The roots are $\boxed{-2}$ and $\boxed{1}$.")
    assert (answer.others, answer.text) == (("-2",), "1")


def test_a_box_of_an_earlier_step_is_not_kept():
    assert final_answer("\\boxed{3} is the first part.\n\nHence \\boxed{4}.").others == ()


def test_a_text_that_answers_an_invented_problem_says_so():
    assert final_answer("The answer is 4.\n\nQuestion: 1 + 1?\nThe answer is 2.").runs_on
    assert not final_answer("The answer is 4.").runs_on


def test_the_closing_sentence_is_taken_only_when_nothing_is_announced():
    answer = final_answer("Tom had 12.\nHe gave away 4 of them.\nThat leaves him with 8 marbles.")
    assert answer.method == "closing sentence"
    assert "8" in answer.text
