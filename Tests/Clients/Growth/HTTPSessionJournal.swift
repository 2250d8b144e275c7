// A program that compiles with a later version of HTTPSessionJournal, in which a line follows each of these:
//   Coordinator/DurableEvent.swift: `case interrupted` `case replaced`
//   Coordinator/DurableTaskInfo.swift: `case upload` `case request`
import HTTPSessionJournal

func text(_ outcome: DurableEvent.Outcome) -> String {
    switch outcome {
    case .finished, .failed, .expired, .cancelled, .interrupted: "known"
    @unknown default: "something new"
    }
}

func text(_ kind: DurableTaskInfo.Kind) -> String {
    switch kind {
    case .download, .upload: "known"
    @unknown default: "something new"
    }
}

private let later1: DurableEvent.Outcome = .replaced  // later version
private let later2: DurableTaskInfo.Kind = .request  // later version
