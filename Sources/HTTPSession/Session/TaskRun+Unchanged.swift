internal import Foundation

/// A download whose file is there already: the server is asked for another version only.
extension TaskRun {
    /// The field that makes the request conditional; none if the file is of another resource.
    func conditionLines() -> [String] {
        guard let finishedFile, finishedFile.belongs(to: request.url, start: task.request.url) else { return [] }
        exchange.condition = finishedFile
        return [finishedFile.fieldLine]
    }

    /// Takes a 304 (Not Modified), after which the file at the destination is the download's. A 304 about another version has the same
    /// request made without its condition.
    func takeUnchanged(_ head: ResponseHead) -> Intake? {
        guard let condition = exchange.condition, head.statusCode == 304, let file = sink as? FileSink else { return nil }
        guard condition.isConfirmed(by: head) else {
            finishedFile = nil
            exchange.next = .startOver
            exchange.isRefused = true
            return .abort(HTTPSessionError(.badServerResponse, "the server's 304 is about another version"))
        }
        file.confirmed = condition
        exchange.next = .complete
        exchange.body = .held(Data())
        (progress.received, progress.expectedToReceive) = (condition.size, condition.size)
        return .taken
    }
}
