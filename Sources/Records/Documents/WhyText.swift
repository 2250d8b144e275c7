package import Console
import FoundationEssentials
import Reachability

/// The text of `why`: a line for each layer with its mark, its time and its sentence, a line with its evidence, the conclusion, and
/// the facts of the server's certificate.
package struct WhyText {
    package var document: WhyDocument
    package var style: TextStyle
    /// The columns of the terminal; `nil` if lines are not wrapped.
    package var columns: Int?

    package init(document: WhyDocument, style: TextStyle, columns: Int? = nil) {
        (self.document, self.style, self.columns) = (document, style, columns)
    }

    private static let layerWidth = ProbeKinds.all.filter { !$0.isReported }.flatMap(\.layers).map(\.rawValue.count).max() ?? 0
    /// The columns before the sentence: mark, layer and time, with their gaps.
    private static let indentation = 2 + layerWidth + 2 + ReadableDuration.width + 2

    package var lines: [String] {
        var lines: [String] = []
        for step in document.diagnosis.steps { lines += self.lines(step) }
        let addresses = document.evidence.addresses
        if !addresses.isEmpty { lines += [""] + addresses.flatMap { self.lines($0) } }
        let known = Set(document.evidence.report?.lookup?.addresses ?? []).count
        if !addresses.isEmpty, known > addresses.count {
            lines += wrapped("\(addresses.count) of the \(known) addresses are probed", indentation: 2).map { "  \($0)" }
        }
        return lines + [""] + conclusion(TextStyle.printable(document.diagnosis.sentence), document.assessment) + certificateLines
    }

    /// The conclusion about the canary; empty without one. It follows the diagnoses of all targets.
    package var canaryLines: [String] {
        document.canary.map { conclusion($0.canarySentence, $0.statusName.assessment) } ?? []
    }

    private func conclusion(_ sentence: String, _ assessment: TextStyle.Assessment) -> [String] {
        let mark = style.paint(style.symbol(assessment), assessment)
        return wrapped(sentence, indentation: 2).enumerated().map { number, text in
            (number == 0 ? "\(mark) " : "  ") + style.paint(text, .bold)
        }
    }

    // MARK: The certificate

    /// The lines of the certificate that the server sent, a fact each; empty without one.
    private var certificateLines: [String] {
        let facts = document.diagnosis.steps.first { $0.layer == .tls }?.evidence ?? [:]
        guard facts["subject"] != nil else { return [] }
        func text(_ name: String) -> String? { facts[name].map(Self.text) }
        let validity = text("not_before").flatMap { start in text("not_after").map { "\(start) to \($0)" } }
        let lines: [(name: String, value: String?)] = [
            ("subject", text("subject")), ("names", text("names")), ("issuer", text("issuer")), ("valid", validity),
            ("sha256", text("sha256")), ("chain", chain(facts)), ("stapled", stapled(facts)),
            ("errors", text("verify_errors")),
        ]
        let width = lines.map(\.name.count).max() ?? 0
        return lines.flatMap { name, value -> [String] in
            guard let value, !value.isEmpty else { return [] }
            let margin = String(repeating: " ", count: 2 + width + 2)
            return wrapped(TextStyle.printable(value), indentation: margin.count).enumerated().map { number, line in
                (number == 0 ? "  " + style.paint(TextStyle.pad(name, width), .dim) + "  " : margin) + line
            }
        }
    }

    private func chain(_ facts: [String: Cause.Evidence]) -> String? {
        guard case .number(let count)? = facts["chain_length"] else { return nil }
        let certificates = count == 1 ? "1 certificate" : "\(count) certificates"
        guard let end = facts["chain_not_after"].map(Self.text), end != facts["not_after"].map(Self.text) else {
            return certificates
        }
        return "\(certificates), valid until \(end)"
    }

    /// The stapled response: `revoked at TIME (keyCompromise), signed by CN=Authority, TIME to TIME`.
    private func stapled(_ facts: [String: Cause.Evidence]) -> String? {
        func text(_ name: String) -> String? { facts[name].map(Self.text) }
        guard let status = text("stapled") else { return nil }
        let revocation = text("revoked_at").map { time in
            "revoked at \(time)" + (text("revocation_reason").map { " (\($0))" } ?? "")
        }
        let times = text("stapled_this_update").map { start in
            text("stapled_next_update").map { "\(start) to \($0)" } ?? "from \(start)"
        }
        // Another status, such as `stale`, says why a revocation does not count.
        let result =
            status == "revoked" ? revocation ?? status : ([status] + [revocation].compactMap { $0 }).joined(separator: ", ")
        let signer = text("stapled_signer").map { "signed by \($0)" }
        return [result, signer, times].compactMap { $0 }.joined(separator: ", ")
    }

    /// The evidence that ``certificateLines`` shows.
    private static let certificateEvidence: Set<String> = [
        "subject", "names", "issuer", "not_before", "not_after", "sha256", "chain_length", "chain_not_after", "verify_errors",
        "stapled", "stapled_this_update", "stapled_next_update", "stapled_signer", "revoked_at", "revocation_reason",
    ]

    // MARK: The layers

    /// The lines of one address of a name: its mark, the address, the round trip, and the cause.
    private func lines(_ result: AddressResult) -> [String] {
        let assessment: TextStyle.Assessment = result.isWithoutRoute ? .neutral : result.status.assessment
        let width = document.evidence.addresses.map { "\($0.address)".count }.max() ?? 0
        let time = result.update?.roundTrip.map(ReadableDuration.text) ?? ""
        let padding = String(repeating: " ", count: max(0, ReadableDuration.width - time.count))
        let text = result.update?.cause?.sentence ?? (result.status == .up ? "answers" : "no verdict yet")
        let head = style.paint(style.symbol(assessment), assessment) + " " + TextStyle.pad("\(result.address)", width)
        let indentation = 2 + width + 2 + ReadableDuration.width + 2
        return wrapped(TextStyle.printable(text), indentation: indentation).enumerated().map { number, line in
            number == 0 ? "\(head)  \(padding)\(time)  \(line)" : String(repeating: " ", count: indentation) + line
        }
    }

    private func lines(_ step: Diagnosis.Step) -> [String] {
        let assessment: TextStyle.Assessment =
            switch step.finding {
            case .works: .good
            case .fails: .bad
            case .unproven: .uncertain
            case .notUsed, .notReached: .neutral
            }
        let isUsed = assessment != .neutral
        let time = step.duration.map(ReadableDuration.text) ?? ""
        let layer = TextStyle.pad(step.layer.rawValue, Self.layerWidth)
        let padding = String(repeating: " ", count: max(0, ReadableDuration.width - time.count))
        let head = [
            style.paint(style.symbol(assessment), assessment) + " " + (isUsed ? layer : style.paint(layer, .dim)), padding + time,
        ].joined(separator: "  ")
        let margin = String(repeating: " ", count: Self.indentation)
        let detail = wrapped(TextStyle.printable(step.detail), indentation: Self.indentation).map { text in
            step.finding == .fails ? style.paint(text, .bad) : isUsed ? text : style.paint(text, .dim)
        }
        let facts = Self.facts(
            step.layer == .tls ? step.evidence.filter { !Self.certificateEvidence.contains($0.key) } : step.evidence)
        let evidence = facts.isEmpty ? [] : wrapped(facts, indentation: Self.indentation).map { margin + style.paint($0, .dim) }
        return zip(0..., detail).map { number, text in number == 0 ? "\(head)  \(text)" : margin + text } + evidence
    }

    /// Returns the evidence as `name=value`, in alphabetical order. Values with spaces are quoted.
    private static func facts(_ evidence: [String: Cause.Evidence]) -> String {
        evidence.sorted { $0.key < $1.key }.map { name, fact in
            func quoted(_ text: String) -> String { text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text }
            return TextStyle.printable("\(name)=\(quoted(text(fact)))")
        }.joined(separator: " ")
    }

    private static func text(_ fact: Cause.Evidence) -> String {
        switch fact {
        case .text(let text): text
        case .number(let number): "\(number)"
        case .flag(let flag): "\(flag)"
        case .list(let texts): texts.joined(separator: ", ")
        }
    }

    /// Returns the text in lines that fit beside the indentation. A longer word has a line of its own.
    private func wrapped(_ text: String, indentation: Int) -> [String] {
        guard let columns else { return [text] }
        let width = max(20, columns - 1 - indentation)
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, DisplayWidth.columns(line) + 1 + DisplayWidth.columns(String(word)) > width {
                lines.append(line)
                line = String(word)
            } else {
                line += line.isEmpty ? String(word) : " \(word)"
            }
        }
        return lines + [line]
    }
}
