public import FoundationEssentials
import EventLoop
import Glibc

/// The error of a server that cannot do what the test requires.
public struct TestServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step that failed, and the message of the system or OpenSSL.
    public let description: String

    package init(_ description: String) {
        self.description = description
    }

    package init(_ call: String, errno number: Int32) {
        self.init("\(call): \(String(cString: strerror(number))) (\(number))")
    }

    package init(_ error: any Error) {
        switch error {
        case let error as TestServerError: self = error
        case let error as LoopError: self.init(error.call, errno: error.errno)
        case LoopThread.StartError.system(let error): self.init(error.call, errno: error.errno)
        default: self.init("\(error)")
        }
    }
}

extension TestServerError: LocalizedError {
    /// One line, without a full stop.
    public var errorDescription: String? { description }
}
