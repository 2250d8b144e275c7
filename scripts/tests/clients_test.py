"""Tests of scripts/clients: how the blocks of a document become a program, and what it expects of the compiler."""

import unittest

from rules_test import script

clients = script("clients")

DOCUMENT = """# Title
```swift
import Records

let a = 1
```
```
no Swift
```
<!-- not compiled: it shows an error -->

```swift
let a = b
```

1. In a list:
   ```swift
   print(a)
   ```

```swift
/// An extension.
extension User {}
```
"""


class Clients(unittest.TestCase):
    def test_blocks_become_a_function_with_the_lines_of_the_document(self):
        text, count, skipped = clients.function_of("Sources/Library/A.md", DOCUMENT, ("Foundation", "file url"))
        self.assertEqual((count, skipped), (3, [(12, "it shows an error")]))
        place = '#sourceLocation(file: "Sources/Library/A.md", line: '
        end = "#sourceLocation()\n"
        self.assertEqual(
            text,
            f"import Foundation\nimport Library\n{place}3)\nimport Records\n{end}"
            f"{place}22)\n/// An extension.\nextension User {{}}\n{end}"
            "func document_Sources_Library_A_md(file: URL, url: URL) async throws {\n"
            f"do {{\n{place}3)\n\n\nlet a = 1\n{end}do {{\n{place}18)\n   print(a)\n{end}}}\n}}\n}}\n")

    def test_an_error_without_an_expectation_and_an_expectation_without_its_error_are_found(self):
        errors = [("A.swift", 1, "'a' has been renamed to 'b'"), ("A.swift", 2, "unknown"), ("A.swift", 3, "'c' is unavailable: use d")]
        expected = {("A.swift", 1): ["b"], ("A.swift", 3): ["z"], ("A.swift", 4): ["f"]}
        self.assertEqual(clients.missing(errors, expected), [
            "A.swift:2: unknown", 'A.swift:3: \'c\' is unavailable: use d, and not one with "z"', 'A.swift:4: no error, and not one with "f"',
        ])

    def test_a_warning_is_found_unless_a_value_is_unused(self):
        output = "A.md:1:5: error: a\nA.md:2:5: warning: b [#Deprecated]\nA.md:3:1: warning: never used [#no-usage]\nA.md:4:1: note: c\n"
        self.assertEqual(clients.ERROR.findall(output), [("A.md", "1", "a"), ("A.md", "2", "b [#Deprecated]")])


if __name__ == "__main__":
    unittest.main()
