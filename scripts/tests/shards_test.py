"""The shard that a change chooses."""

import unittest

from rules_test import script

shards = script("shards")


class Shards(unittest.TestCase):
    def test_a_path_counts_for_each_shard_that_names_it(self):
        numstat = "3\t4\tSources/HTTPSession/Curl/Easy.swift\n1\t0\tdocs/limits.md\n-\t-\tFuzz/Corpora/http/a"
        self.assertEqual(shards.changed_lines(numstat), [7, 0, 8, 0, 0, 0])

    def test_a_renamed_file_counts_at_its_new_path(self):
        self.assertEqual(shards.changed_lines("1\t1\tTests/{Chaos => Laboratory/Chaos}/Chaos.swift"), [0, 0, 0, 0, 0, 2])

    def test_the_shard_with_the_most_changed_lines_runs_and_the_others_are_owed(self):
        self.assertEqual(shards.choice([7, 0, 8, 0, 1, 0], 1200), (2, [0, 4]))

    def test_without_a_changed_path_the_number_of_commits_decides(self):
        self.assertEqual([shards.choice([0] * 6, commits) for commits in (1199, 1200)], [(5, []), (0, [])])


if __name__ == "__main__":
    unittest.main()
