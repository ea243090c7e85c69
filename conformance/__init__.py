"""Compare Pergola with Gardener: the original answers the questions that Pergola answers.

    make conformance                         every subject, for a minute each
    make conformance ARGS="health --seconds 600 --seed 7"
    make conformance ARGS="--record"         write the recorded facts again

- `oracle/`: programs in Go that call the originals' exported functions.
- `oracles` starts them and asks; `subjects/` has the questions and Pergola's answers.
- `questions/`: collected questions, which are always asked.
- `facts/`: recorded answers, which `make test` compares with Pergola's without Go.
- `differences.toml`: the decided differences, the only ones that are accepted.
- `search` looks for others with random cases; `page` writes docs/reference/conformance.md.
- `update` asks another version of an original the recorded questions.
"""
