/// The questions that wait to be sent, so that not more answers arrive at once than the socket's receive buffer holds.
struct SendQueue: Hashable, Sendable {
    /// A question, and the time at which it was added.
    struct Entry: Hashable, Sendable {
        let question: NameQuestion
        let added: Int64
        var id: UInt64 { question.id }
    }

    private var waiting: [Entry] = []
    private var taken = 0
    private var removed: Set<UInt64> = []
    /// The questions that were sent within ``NameTable/burstTime``, in order.
    private var sent: [(id: UInt64, time: Int64)] = []
    private var forgotten = 0
    private var young: Set<UInt64> = []
    private var open: Set<UInt64> = []

    /// The time at which a waiting question may be sent although no other one ends; `nil` if none waits.
    var deadline: Int64? {
        guard taken < waiting.count, forgotten < sent.count else { return nil }
        return sent[forgotten].time + NameTable.burstTime
    }

    var isEmpty: Bool { taken == waiting.count && open.isEmpty && removed.isEmpty }

    /// Adds a question. Its number is above those of all earlier ones.
    mutating func add(_ question: NameQuestion, at now: Int64) { waiting.append(Entry(question: question, added: now)) }

    /// Returns whether a question has been added and not sent.
    func isWaiting(_ id: UInt64) -> Bool { taken < waiting.count && waiting[taken].id <= id }

    /// Removes a question that has not been sent.
    mutating func remove(_ id: UInt64) { if !open.contains(id) { removed.insert(id) } }

    /// Handles the end of a question.
    mutating func ended(_ id: UInt64) {
        young.remove(id)
        open.remove(id)
    }

    /// Removes the questions that may be sent now from the queue, and returns them.
    mutating func takeSendable(now: Int64) -> [Entry] {
        while forgotten < sent.count, sent[forgotten].time + NameTable.burstTime <= now {
            young.remove(sent[forgotten].id)
            forgotten += 1
        }
        var questions: [Entry] = []
        while taken < waiting.count, young.count < NameTable.burstLimit, open.count < NameTable.openLimit {
            let question = waiting[taken]
            taken += 1
            if removed.remove(question.id) != nil { continue }
            young.insert(question.id)
            open.insert(question.id)
            sent.append((question.id, now))
            questions.append(question)
        }
        compact()
        return questions
    }

    // The fronts of the lists are removed together.
    private mutating func compact() {
        if taken == waiting.count || taken > 1024 {
            waiting.removeFirst(taken)
            taken = 0
        }
        if forgotten == sent.count || forgotten > 1024 {
            sent.removeFirst(forgotten)
            forgotten = 0
        }
    }

    static func == (left: SendQueue, right: SendQueue) -> Bool { left.waiting == right.waiting && left.open == right.open }

    func hash(into hasher: inout Hasher) { hasher.combine(waiting) }
}
