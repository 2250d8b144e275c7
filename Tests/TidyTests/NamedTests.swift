/// The tests that docs/compared.md names as evidence.
enum NamedTests {
    static let document = "docs/compared.md"
    /// The title of the column in which tests are named.
    static let column = "shown by, or why"

    /// Code spans of the column that are no tests: members of Apple's interfaces that ours do not have.
    static let otherNames: Set<String> = ["isMultipath"]

    /// Names of tests, in the tables of the document, that no file of `files` declares: each code span in the column is the title or
    /// the function of a test.
    static func findings(_ document: SourceFile, in files: [SourceFile]) -> [Finding] {
        let declared = Set(files.filter { $0.isSwift && $0.isIn(["Tests"]) }.flatMap(declarations))
        var isInTable = false
        return zip(1..., document.lines).flatMap { number, line -> [Finding] in
            guard line.hasPrefix("|") else {
                isInTable = false
                return []
            }
            let last = line.split(separator: "|", omittingEmptySubsequences: false).dropLast().last ?? ""
            if last.contains(column) { isInTable = true }
            guard isInTable else { return [] }
            return last.matches(of: /`([^`]+)`/).map { String($0.1) }.filter {
                !declared.contains($0) && !otherNames.contains($0)
            }.map {
                Finding(path: document.path, line: number, what: "there is no test `\($0)`")
            }
        }
    }

    /// The titles and the functions of a file's tests.
    private static func declarations(_ file: SourceFile) -> [String] {
        var isAfterTest = false
        return file.lines.flatMap { line -> [String] in
            let title = isAfterTest ? line.firstMatch(of: /^\s*"([^"]+)"/).map { [String($0.1)] } ?? [] : []
            isAfterTest = line.has("@Test(") && line.hasSuffix("@Test(")
            guard line.has("func ") || line.has("@Test(") else { return title }
            return title + line.matches(of: /func `([^`]+)`/).map { String($0.1) }
                + line.matches(of: /func (\w+)\(/).map { String($0.1) }
                + line.matches(of: /@Test\("([^"]+)"/).map { String($0.1) }
        }
    }
}
