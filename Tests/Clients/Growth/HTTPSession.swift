// A program that compiles with a later version of HTTPSession, in which a line follows each of these:
//   Session/TransferTask.swift: `case finished` `case paused`
//   Session/TransferTask.swift: `case stream` `case webSocket`
//   Messages/AuthenticationChallenge.swift: `case basic, digest, bearer, ntlm, negotiate` `case mutual`
//   Session/SessionEvent.swift: `case sessionInvalidated` `case sessionMoved(TransferTask)`
//   Messages/HTTPSessionError+Codes.swift: `public static let misuse = HTTPSessionError.Code("misuse")` `public static let eclipse = HTTPSessionError.Code("eclipse")`
import HTTPSession

func text(_ state: TransferTask.State) -> String {
    switch state {
    case .suspended, .waiting, .running, .backingOff, .waitingForConnectivity, .finished: "known"
    @unknown default: "something new"
    }
}

func text(_ kind: TransferTask.Kind) -> String {
    switch kind {
    case .data, .download, .upload, .stream: kind.rawValue
    @unknown default: "something new"
    }
}

func text(_ scheme: AuthenticationScheme) -> String {
    switch scheme {
    case .basic, .digest, .bearer, .ntlm, .negotiate: scheme.rawValue
    @unknown default: "something new"
    }
}

func text(_ code: HTTPSessionError.Code) -> String {
    switch code {
    case .timedOut: "too slow"
    default: code.rawValue
    }
}

func size(_ event: SessionEvent) -> Int64? {
    switch event {
    case .downloadContinued(_, let offset, _): offset
    default: nil
    }
}

private let later1: TransferTask.State = .paused  // later version
private let later2: TransferTask.Kind = .webSocket  // later version
private let later3: AuthenticationScheme = .mutual  // later version
private func later4(_ task: TransferTask) -> SessionEvent { .sessionMoved(task) }  // later version
private let later5: HTTPSessionError.Code = .eclipse  // later version
