/// The names in a Swift file that begin with a capital letter: which types it declares, and which names it uses. Comments and texts do not
/// count, but for what is interpolated into a text.
struct SwiftWords {
    /// Types declared outside of any other.
    private(set) var types: Set<Substring> = []
    /// Types declared inside of others; the same name elsewhere means another type.
    private(set) var nestedTypes: Set<Substring> = []
    /// Names used, each with the line of its first use. `A.B` uses `A`.
    private(set) var names: [Substring: Int] = [:]

    private static let declarations: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]

    init(_ file: SourceFile) {
        var (depth, last) = (0, Substring())
        var scanner = SwiftScanner()
        for (number, line) in zip(1..., file.lines) {
            scanner.scan(line) { kind, token in
                guard kind == .code else { return }
                switch token {
                case "{": depth += 1
                case "}": depth -= 1
                case _ where SwiftWords.declarations.contains(last):
                    if depth == 0 { types.insert(token) } else { nestedTypes.insert(token) }
                case _ where token.first?.isUppercase == true && last != ".":
                    if names[token] == nil { names[token] = number }
                default: break
                }
                last = token
            }
        }
    }
}
