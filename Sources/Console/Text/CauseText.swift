package import Reachability

extension Cause {
    /// The cause as `LAYER/CODE: DETAIL`, in one line without control characters.
    package var sentence: String { TextStyle.printable("\(name): \(detail)") }
}

extension JSONWriter {
    /// Writes the member `cause`: an object, or null.
    package mutating func member(_ cause: Cause?) {
        key("cause")
        guard let cause else { return null() }
        object { writer in
            writer.member("layer", cause.layer.rawValue)
            writer.member("code", cause.code.rawValue)
            writer.member("detail", cause.detail)
            writer.member(facts: cause.sortedEvidence)
        }
    }

    /// Writes the member `evidence`: an object of facts in alphabetical order.
    package mutating func member(evidence: [String: Cause.Evidence]) {
        member(facts: evidence.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    private mutating func member(facts: [(name: String, value: Cause.Evidence)]) {
        key("evidence")
        object { writer in
            for (name, fact) in facts {
                writer.key(text: name)
                switch fact {
                case .text(let text): writer.value(text)
                case .number(let number): writer.value(number)
                case .flag(let flag): writer.value(flag)
                case .list(let texts): writer.array { for text in texts { $0.value(text) } }
                }
            }
        }
    }
}
