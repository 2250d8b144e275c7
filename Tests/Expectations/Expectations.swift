public import Testing

/// Records an issue that shows both values if they differ.
///
/// A call compiles in a quarter of the time of `#expect(found == expected)`, whose expansion the compiler checks at each use. Keep `#expect` for conditions
/// whose parts a reader needs to see, such as `a.contains(b) && c < d`.
public func expectEqual<Value: Equatable>(
    _ found: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: Int = #line, column: Int = #column
) {
    guard found != expected else { return }
    let place = SourceLocation(fileID: "\(fileID)", filePath: "\(filePath)", line: line, column: column)
    record(differenceText(found, expected), comment(), at: place)
}

/// Records an issue that shows the value unless the value is `nil`.
public func expectNil<Value>(
    _ found: Value?, _ comment: @autoclosure () -> Comment? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: Int = #line, column: Int = #column
) {
    guard let found else { return }
    let place = SourceLocation(fileID: "\(fileID)", filePath: "\(filePath)", line: line, column: column)
    record("\(String(describingForTest: found)) is not nil", comment(), at: place)
}

/// Records an issue that shows the elements unless the collection is empty.
public func expectEmpty<Elements: Collection>(
    _ found: Elements, _ comment: @autoclosure () -> Comment? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: Int = #line, column: Int = #column
) {
    guard !found.isEmpty else { return }
    let place = SourceLocation(fileID: "\(fileID)", filePath: "\(filePath)", line: line, column: column)
    record("\(String(describingForTest: found)) is not empty", comment(), at: place)
}

private func record(_ text: String, _ comment: Comment?, at place: SourceLocation) {
    let comment = comment.map { "\(text) (\($0.rawValue))" } ?? text
    Issue.record(Comment(rawValue: comment), sourceLocation: place)
}

/// Both values. Long texts and collections also show where they begin to differ.
func differenceText<Value: Equatable>(_ found: Value, _ expected: Value) -> String {
    let values = (String(describingForTest: found), String(describingForTest: expected))
    let text =
        values.0.utf8.count + values.1.utf8.count < 100
        ? "\(values.0) is not equal to \(values.1)" : "\n  found:    \(values.0)\n  expected: \(values.1)"
    return text + (firstDifference(found, expected).map { "\n  \($0)" } ?? "")
}

/// The first elements that differ, in two arrays or in the lines of two texts of several lines.
private func firstDifference<Value>(_ found: Value, _ expected: Value) -> String? {
    func lines(_ text: String) -> [any Sendable] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
    let parts: ([Any], [Any])? =
        switch (found, expected) {
        case (let found as String, let expected as String) where found.contains("\n") || expected.contains("\n"):
            (lines(found), lines(expected))
        case (let found as [Any], let expected as [Any]) where max(found.count, expected.count) > 1: (found, expected)
        default: nil
        }
    guard let (found, expected) = parts else { return nil }
    func text(_ values: [Any], _ index: Int) -> String {
        index < values.count ? String(describingForTest: values[index]) : "nothing"
    }
    let index = (0..<max(found.count, expected.count)).first { text(found, $0) != text(expected, $0) }
    return index.map { "first difference at [\($0)]: \(text(found, $0)), expected \(text(expected, $0))" }
}
