import Expectations
import Foundation
import Pacing
import Reachability
import Testing

@testable import netwatch_service

@Suite struct MarkupTests {
    private static func text(_ markup: Markup) -> String { PageSamples.text(markup.bytes) }

    @Test func `literals are markup, and text is escaped`() {
        let name = "<b>\"a\" & 'b'</b>"
        expectEqual(
            Self.text("<td title=\"\(name)\">\(name)</td>"),
            """
            <td title="&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;">&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;</td>
            """)
    }

    @Test func `a piece within a piece is not escaped twice`() {
        let inner: Markup = "<i>\("<")</i>"
        expectEqual(Self.text("<p>\(inner)</p>"), "<p><i>&lt;</i></p>")
    }

    @Test func `control, direction and line characters become U+FFFD`() {
        let names = [
            "\u{0}", "\u{1b}", "\u{7f}", "\u{9b}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{2028}", "\u{ffff}", "\t", "\r",
        ]
        for name in names { expectEqual(Self.text("\("a\(name)b")"), "a\u{fffd}b", "\(name.unicodeScalars.map(\.value))") }
    }

    @Test func `an address has percent-encoded bytes`() {
        let address = PageAddress("/target/", segment: "a b/?#\"<é\u{0}", query: [("q", "&=\u{202e}"), ("none", nil)])
        expectEqual(address.text, "/target/a%20b%2F%3F%23%22%3C%C3%A9%00?q=%26%3D%E2%80%AE")
        expectEqual(Self.text("<a href=\"\(address)\">"), "<a href=\"/target/a%20b%2F%3F%23%22%3C%C3%A9%00?q=%26%3D%E2%80%AE\">")
    }

    @Test(arguments: [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//evil.example", "/\\evil.example", " https://a",
        "vbscript:x",
        "https://a\"onclick=", "https://a b", "https:\\\\a", "",
    ])
    func `an address elsewhere has http or https`(_ url: String) {
        expectNil(PageAddress(external: url))
        expectEqual(PageAddress(external: "https://example.org/a?b=1&c=2")?.text, "https://example.org/a?b=1&c=2")
    }

    @Test func `text in an address or an unquoted attribute of a template stops the program`() async {
        await #expect(processExitsWith: .failure) {
            let text = "javascript:alert(1)"
            let piece: Markup = "<a href=\"\(text)\">"
            _ = piece
        }
        await #expect(processExitsWith: .failure) {
            let text = "x onclick=alert(1)"
            let piece: Markup = "<a class=\(text)>"
            _ = piece
        }
    }

    @Test func `random text never leaves its place`() {
        let seed = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0 ... .max)
        print("NETWATCH_SEED=\(seed) repeats this run")
        var random = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            let text = HostileText.text(&random)
            let markup = Self.text("<a title=\"\(text)\">\(text)</a>")
            // By scalars: a combining mark makes one character with a quotation mark.
            let inner = String(
                String.UnicodeScalarView(markup.unicodeScalars.dropFirst("<a title=\"".count).dropLast("</a>".count)))
            func count(_ scalar: Unicode.Scalar) -> Int { inner.unicodeScalars.count { $0 == scalar } }
            let isContained = count("<") == 0 && count("\"") == 1 && count(">") == 1
            #expect(isContained, "seed \(seed): \(text.debugDescription)")
            #expect(!markup.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0 == "\u{202e}" }, "seed \(seed)")
            let cell = CSVDocument.cell(text)
            let value = cell.unicodeScalars.first == "\"" ? cell.unicodeScalars.dropFirst() : cell.unicodeScalars[...]
            let first = value.first { $0 != " " }
            #expect(first.map { !"=+-@\t\r".unicodeScalars.contains($0) } ?? true, "seed \(seed): \(cell.debugDescription)")
        }
    }

    @Test func `cells of CSV are no formulas`() {
        expectEqual(CSVDocument.cell("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"")
        expectEqual(CSVDocument.cell("  @SUM(A1)"), "\"'  @SUM(A1)\"")
        expectEqual(CSVDocument.cell("\t+1"), "\"'\u{fffd}+1\"")
        expectEqual(CSVDocument.cell("\u{ff1d}1"), "\"'\u{ff1d}1\"")
        expectEqual(CSVDocument.cell("a \"b\", c\n"), "\"a \"\"b\"\", c\u{fffd}\"")
        expectEqual(CSVDocument.cell("db.example:5432"), "db.example:5432")
    }
}

/// Text of characters that are special somewhere.
enum HostileText {
    private static let parts = [
        "<", ">", "\"", "'", "&", "=", "+", "-", "@", "\t", "\r", "\n", "\u{0}", "\u{1b}[31m", "\u{202e}", "\u{2066}", "\u{feff}",
        "]]>", "<!--", "-->",
        "<script>", "</script>", "</textarea>", "javascript:", "&lt;", "&#60;", "%3C", "\\", "/", " ", ";", ",", "{{", "}}", "$",
        "`", "é", "\u{301}", "日本",
        "👩‍👩‍👧", "العربية", "\u{ffff}", "\u{10ffff}", "a", "onload=", "x",
    ]

    static func text(_ random: inout SplitMix64) -> String {
        (0..<Int(random.next() % 12)).map { _ in parts[Int(random.next() % UInt64(parts.count))] }.joined()
    }
}
