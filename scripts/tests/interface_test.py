"""Tests of scripts/interface with symbol graphs of a few symbols."""

import unittest

from rules_test import script

interface = script("interface")


def conformance(source, target, fallback=None):
    return {"kind": "conformsTo", "source": source, "target": target} | ({"targetFallback": fallback} if fallback else {})


class Interface(unittest.TestCase):
    def lines(self, symbols, relationships):
        symbols = [
            {"identifier": {"precise": precise}, "pathComponents": path, "declarationFragments": [{"spelling": text} for text in texts]}
            for precise, path, *texts in symbols
        ]
        return interface.lines_of([("P", {"symbols": symbols, "relationships": relationships})])

    def test_each_symbol_and_the_conformances_of_each_type_have_a_line(self):
        lines = self.lines(
            [("a", ["A"], "struct", " A"), ("b", ["A", "b()"], "func b(\n  )")],
            [
                conformance("a", "s:SH", "Swift.Hashable"), conformance("a", "s:s8CopyableP", "Swift.Copyable"),
                conformance("a", "s:10Foundation", "Foundation.LocalizedError"), {"kind": "memberOf", "source": "b", "target": "a"},
            ])
        self.assertEqual(lines, ["P A : Hashable, LocalizedError", "P A | struct A", "P A.b() | func b( )"])

    def test_a_conformance_that_a_product_adds_to_the_type_of_another_module_has_a_line(self):
        lines = self.lines([], [
            conformance("s:Sq", "s:11HTTPSession13EmptyResponseP"), conformance("s:Sq", "s:s8CopyableP", "Swift.Copyable"),
            conformance("s:20FoundationEssentials11JSONDecoderC", "s:11HTTPSession11DataDecoderP"),
            conformance("s:11HTTPSession0A5ErrorV", "s:10Foundation13CustomNSErrorP", "Foundation.CustomNSError"),
            conformance("s:1P1AV1BV", "s:SH", "Swift.Hashable"), conformance("c:objc(cs)Other", "s:SH", "Swift.Hashable"),
        ])
        self.assertEqual(lines, [
            "P A.B : Hashable", "P HTTPSessionError : CustomNSError", "P JSONDecoder : DataDecoder", "P Optional : EmptyResponse",
            "P c:objc(cs)Other : Hashable",
        ])


if __name__ == "__main__":
    unittest.main()
