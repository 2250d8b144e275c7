"""The comparison of packages and libraries with the listed versions."""

import json
import re
import subprocess
import unittest

from rules_test import ROOT, script

versions = script("versions")
A = ("a", "1.0.0", "0123456789abcdef", "https://example.com/a")
B = ("b", "2.0.0", "fedcba9876543210", "https://example.com/b")


class Versions(unittest.TestCase):
    def test_a_written_file_has_the_listed_packages(self):
        text = versions.resolved([A, B])
        self.assertEqual(versions.pins(text), [A, B])
        self.assertEqual(versions.package_differences(versions.pins(text), [A, B]), [])

    def test_each_difference_of_a_package_is_named(self):
        for found, expected in [
            ([("a", "1.1.0", A[2], A[3]), B], ["a is 1.1.0, not 1.0.0"]),
            # A tag that was moved.
            ([("a", "1.0.0", "ffffffffffffffff", A[3]), B], ["a 1.0.0 is the commit ffffffffffff, not 0123456789ab"]),
            ([("a", "1.0.0", A[2], "https://example.net/a"), B], ["a is from https://example.net/a, not https://example.com/a"]),
            ([A], ["b is missing"]),
            ([A, B, ("c", "3.0.0", "1", "x")], ["c 3.0.0 is not listed"]),
        ]:
            self.assertEqual(versions.package_differences(found, [A, B]), expected)

    def test_a_branch_is_a_difference(self):
        text = json.dumps({"pins": [{"identity": "a", "location": A[3], "state": {"branch": "main", "revision": A[2]}}]})
        self.assertEqual(versions.package_differences(versions.pins(text), [A]), ["a is main, not 1.0.0"])

    def test_only_an_installed_library_below_its_floor_is_named(self):
        installed = {"libcurl4": "7", "libssl3": "9"}
        found = versions.library_differences(installed, {"libcurl4": "8", "libssl3": "9", "libre2-9": "1"}, lambda one, other: one < other)
        self.assertEqual(found, ["libcurl4 is 7, older than 8"])

    def test_the_system_is_read_with_and_without_quotes(self):
        self.assertEqual(versions.system('PRETTY_NAME="x"\nVERSION_ID="12"\nID=debian\n'), ("debian", "12"))
        self.assertEqual(versions.system(""), ("", ""))

    def test_each_package_of_the_manifest_is_listed_within_its_range(self):
        manifest = (ROOT / "Package.swift").read_text()
        listed = {location.removesuffix(".git"): version for _, version, _, location in versions.PACKAGES}
        for location, lowest in re.findall(r'\.package\(url: "([^"]+)", from: "([^"]+)"\)', manifest):
            number = [int(part) for part in listed[location.removesuffix(".git")].split(".")]
            low = [int(part) for part in lowest.split(".")]
            self.assertTrue(number >= low and number[0] == low[0], location)

    def test_packages_are_sorted_and_have_complete_commits(self):
        self.assertEqual(versions.PACKAGES, sorted(versions.PACKAGES))
        for package in versions.PACKAGES:
            self.assertRegex(package[2], "^[0-9a-f]{40}$")

    def test_the_advisories_name_the_versions_of_packages_with_foreign_code(self):
        text = (ROOT / "docs/advisories.md").read_text()
        listed = {package[0]: package[1] for package in versions.PACKAGES}
        self.assertIn(f"swift-nio {listed['swift-nio']}", text)
        self.assertIn(f"Yams {listed['yams']}", text)
        for name in versions.FLOORS:
            self.assertIn(f"`{name}`", text)

    def test_package_resolved_stays_out_of_commits(self):
        files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "Package.resolved"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(files.stdout, "")


if __name__ == "__main__":
    unittest.main()
