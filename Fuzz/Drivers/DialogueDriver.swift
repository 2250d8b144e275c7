@testable import Reachability

extension FuzzDriver {
    /// What a server says in a dialogue, whole and in pieces. The first byte chooses the dialogue: a preset, or one with groups.
    static let dialogue = FuzzDriver(name: "dialogue") { input in
        let presets = DialogueSettings.Preset.allCases
        let number = Int(input.first ?? 0) % (presets.count + 1)
        var settings = ProbeSettings()
        if number < presets.count {
            settings.dialogue.use(presets[number])
        } else {
            try settings.dialogue.expect("^(?P<first>[a-z]*) (?:x|(?P<second>.*))")
            try settings.dialogue.send("${first} ${2} ${none}")
            try settings.dialogue.expect("")
        }
        let plan = DialoguePlan(try Endpoint("dialogue://a.test:1"), settings)
        func result(_ pieces: [ArraySlice<UInt8>]) throws -> DialogueFacts {
            let run = DialogueRun(plan, deadline: 9)
            run.connected(1)
            for piece in pieces {
                piece.withUnsafeBytes { run.receive($0, now: 1) }
                _ = run.takeOutput()
            }
            run.inputEnded(1)
            try require(run.hasEnded, "the dialogue does not end")
            let facts = run.result.facts[DialogueFacts.self]
            try facts.checkRanges()
            let done = facts.done ?? -1
            try require((0...plan.steps.count).contains(done), "\(done) steps")
            let isComplete = done == plan.steps.count
            try require(
                isComplete ? facts.failure == nil : facts.failure != nil || run.result.handshakeEnd != nil, "no end: \(facts)")
            let texts = (facts.others ?? []) + [facts.answer ?? ""] + (facts.captures ?? [:]).values
            try require(texts.allSatisfy { $0.unicodeScalars.count <= ExternalText.valueLength + 1 }, "a long text")
            try require((facts.others ?? []).count <= 4, "more than four lines")
            return facts
        }
        let said = input.dropFirst()
        let whole = try result([said])
        for message in [DialogueMessage.postgres, .mysql, .ldap] {
            if case .accepted(let count) = message.read(said) { try require(count <= said.count, "\(message): \(count) bytes") }
        }
        // Before a handshake, what is refused and what is shown depends on what has arrived already: lines alone have the same result in any pieces.
        guard plan.tls == nil else { return }
        var random = randomNumbers(for: input)
        try require(whole == result(pieces(of: Array(said), &random)), "pieces give another result")
    }
}
