"""One rule a kind of answer: each says whether two trees mean the same, or that it is not its kind."""
