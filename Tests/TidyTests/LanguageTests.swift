import Testing

struct LanguageTests {
    @Test(
        "a refused word in an identifier is found",
        arguments: [
            "let fate = 1", "struct TransferWays {}", "func isToldTwice() {}", "let cookie_wish = 1", "let HTTPParcel = 1",
            "print(\"\\(anew)\")", "@Test func `a server is told of it`() {}", "let a = ##\"\\##(wish)\"##",
        ])
    func refusedWords(_ line: String) {
        #expect(Language.identifiers(SourceFile("Sources/A/B.swift", "\n\(line)")).map(\.line) == [2])
    }

    @Test(
        "a word that only contains a refused word, a comment and a string are not found",
        arguments: [
            "let always = 1", "let wishbone = renewal", "// told anew", "let a = \"fate\"", "let a = #\"a \" fate\"#",
            "let untoldX = 1",
        ])
    func otherWords(_ line: String) {
        #expect(Language.identifiers(SourceFile("Sources/A/B.swift", line)).isEmpty)
    }

    @Test(
        "a documentation comment that begins without its subject is found",
        arguments: ["Of a server.", "Where it is.", "What it is.", "Who it is.", "The same.", "The same, later."])
    func documentationBeginnings(_ text: String) {
        let comment = "struct A {\n    /// \(text)\n    /// The value.\n    let a = 1\n}"
        #expect(Language.documentation(SourceFile("Sources/A/B.swift", comment)).map(\.line) == [2])
    }

    @Test(
        "only the first line of a documentation comment is asked for its subject, and only whole words count",
        arguments: [
            "/// The value.\n/// What it is.", "/// Offset.", "/// Whether it is.", "/// Whoever reads.", "// What it is.",
            "/// The sameness.",
        ])
    func otherBeginnings(_ text: String) {
        #expect(Language.documentation(SourceFile("Sources/A/B.swift", text)).isEmpty)
    }

    @Test(
        "a block comment or a comment of C that begins without its subject is found",
        arguments: [
            ("Sources/A/B.swift", "\n/** What it is. */"), ("Sources/A/B.swift", "/**\n    Where it is.\n*/"),
            ("Sources/A/B.swift", "/**\n * Who it is. */"), ("Sources/A/B.swift", "/** The value. */\n/** The same. */"),
            ("Sources/A/b.c", "int a;\n// What it is."), ("Sources/A/b.h", "/* First. */\n  /* Of a server. */"),
            ("Sources/A/b.c", "/**\n * What it is.\n */"),
        ])
    func blockComments(_ path: String, _ text: String) {
        #expect(Language.documentation(SourceFile(path, text)).map(\.line) == [2])
    }

    @Test(
        "ordinary block comments of Swift, later lines, and comments behind code are not asked for their subject",
        arguments: [
            ("Sources/A/B.swift", "/* What it is. */"), ("Sources/A/B.swift", "/**/\nlet a = 1 // What it is."),
            ("Sources/A/B.swift", "/** The value.\n What it is.\n */"), ("Sources/A/b.c", "// The value.\n// What it is."),
            ("Sources/A/b.c", "int a; // What it is."), ("Sources/A/b.h", "/* The value.\n * Of a server. */\nint a;"),
            ("docs/a.md", "// What it is."),
        ])
    func otherBlockComments(_ path: String, _ text: String) {
        #expect(Language.documentation(SourceFile(path, text)).isEmpty)
    }

    @Test(
        "a refused word in a name of C is found, and not in its comments and strings",
        arguments: [
            ("int fate;", 1), ("#define NETWATCH_WISH 1", 1), ("static void netwatch_told(void) {", 1),
            ("// told anew", 0), ("/* told */ int a;", 0), ("puts(\"anew\");", 0), ("int always;", 0),
        ])
    func namesOfC(_ line: String, _ count: Int) {
        #expect(Language.identifiers(SourceFile("Sources/A/b.c", line)).count == count)
    }

    @Test(
        "a British spelling is found in comments, strings, names, documents and scripts",
        arguments: [
            ("Sources/A/B.swift", "// its behaviour"), ("Sources/A/B.swift", "let a = \"Neighbours\""),
            ("Sources/A/B.swift", "let jsonSerialiser = 1"), ("Sources/A/B.swift", "/* Initialised */"),
            ("Sources/A/B.swift", "// a task that was cancelled"), ("Sources/A/B.swift", "print(\"the task was cancelled\")"),
            ("Sources/A/B.swift", "@Test func `a cancelled task ends`() {}"), ("docs/a.md", "The colour is grey."),
            ("Sources/A/b.c", "/* its behaviour */"), ("Sources/A/b.h", "// Serialised"),
            ("scripts/a", "catalogue=1"), ("README.md", "a cancelled task"), ("docs/a.md", "the license, or licence"),
        ])
    func britishSpelling(_ path: String, _ line: String) {
        #expect(!Language.spelling(SourceFile(path, line)).isEmpty)
    }

    @Test(
        "American spelling, and the spellings that mirror Swift's and Foundation's, are not found",
        arguments: [
            ("Sources/A/B.swift", "// its behavior, four hours of ours, promised, otherwise, precise, colorless"),
            ("Sources/A/B.swift", "if Task.isCancelled { throw HTTPSessionError(.cancelled) }"),
            ("Sources/A/B.swift", "/// See `isCancelled` and ``HTTPSessionError/cancelled``: `cancelled`."),
            ("Sources/A/B.swift", "let code = \"cancelled\""), ("Tests/A/B.swift", "#expect(text == \"abandon, end cancelled\")"),
            ("Tests/A/B.swift", "@Test func `a task fails as cancelled`() {}"),
            ("docs/a.md", "{\"code\": \"cancelled\"}, and URLError.cancelled"),
            ("docs/a.md", "A task is canceled; cancellation; called, installed, spelled, revised, exercise, noise."),
        ])
    func americanSpelling(_ path: String, _ line: String) {
        #expect(Language.spelling(SourceFile(path, line)).isEmpty)
    }

    @Test func `words are separated by capital letters, underscores and digits`() {
        #expect(
            Language.words("HTTPSession_isOpen2Ways aURL").map(\.text) == ["HTTP", "Session", "is", "Open", "Ways", "a", "URL"])
    }

    @Test func `every exception names a file that exists, and a reason`() throws {
        let paths = try repositoryFiles().map(\.path)
        for exception in Language.exceptions {
            #expect(paths.contains { $0 == exception.path || $0.hasPrefix(exception.path + "/") }, "\(exception.path)")
            #expect(!exception.reason.isEmpty)
        }
    }
}
