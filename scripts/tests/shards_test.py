"""The shard that a change chooses."""

import re
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

    def test_each_file_of_sources_tests_and_scripts_belongs_to_a_shard_or_is_known_to_belong_to_none(self):
        files = shards.git("ls-files", "Sources", "Tests", "Fuzz", "Examples", "scripts", "Benchmarks").splitlines()
        patterns = [pattern for _, pattern in shards.SHARDS] + [shards.OTHERS]
        self.assertEqual([file for file in files if not any(re.match(pattern, file) for pattern in patterns)], [])


if __name__ == "__main__":
    unittest.main()
