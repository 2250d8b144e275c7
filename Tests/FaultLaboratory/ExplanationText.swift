import Foundation

/// The text of `netwatch why`: the layers, the closing sentence, and the facts of the server's certificate below.
struct ExplanationText {
    /// The closing sentence, without its mark.
    let sentence: String
    /// The lines below the closing sentence: the name of each fact and its value.
    let facts: [String: String]

    /// The facts of a certificate that a person needs to recognize it.
    private static let certificateFacts = ["subject", "issuer", "names", "valid", "sha256"]
    private static let wordLimit = 25

    init(_ text: String) {
        let paragraphs = text.split(separator: "\n\n").map { $0.split(separator: "\n") }
        let lines = paragraphs.last ?? []
        sentence = lines.first.map { String($0.dropFirst(2)) } ?? ""
        facts = Dictionary(
            lines.dropFirst().compactMap { line in
                let words = line.split(separator: " ", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                return words.count == 2 ? (words[0], words[1]) : nil
            }, uniquingKeysWith: { one, _ in one })
    }

    /// The first rule that the text violates; `nil` if it is right.
    func problem(of fault: Fault, _ verdict: SeenVerdict) -> String? {
        guard let cause = verdict.cause else { return "no cause" }
        if !sentence.contains(" is \(verdict.status): ") || !sentence.contains("(\(cause)") { return "no closing sentence" }
        // The first bytes of a server are no words of the sentence.
        let words = sentence.replacing(#/"[^"]*"|'[^']*'/#, with: "").split(separator: " ")
        if words.count > Self.wordLimit { return "\(words.count) words in the closing sentence" }
        // What still works follows the cause of a degraded target.
        let account = verdict.status == "degraded" ? sentence.prefix { $0 != ";" } : sentence[...]
        if sentence.contains(". ") || account.contains("; ") || sentence.hasSuffix(".") { return "more than one sentence" }
        if let part = fault.sentencePart, !sentence.contains(part) { return "the closing sentence lacks '\(part)'" }
        guard fault.hasCertificate else { return nil }
        let missing = Self.certificateFacts.filter { facts[$0] == nil }
        return missing.isEmpty ? nil : "no \(missing.joined(separator: ", ")) of the certificate"
    }
}
