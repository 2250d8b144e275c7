import FoundationEssentials
import Glibc
package import Reachability

/// The program's exit codes: those of sysexits.h, and those that shells and timeout(1) use.
package enum ExitCode {
    package static let holds: Int32 = 0
    package static let doesNotHold: Int32 = 1
    package static let undetermined: Int32 = 2
    package static let usage: Int32 = 64
    package static let badData: Int32 = 65
    package static let noInput: Int32 = 66
    package static let unavailable: Int32 = 69
    package static let internalError: Int32 = 70
    package static let system: Int32 = 71
    package static let cannotCreate: Int32 = 73
    package static let inputOutput: Int32 = 74
    package static let notPermitted: Int32 = 77
    package static let configuration: Int32 = 78
    package static let timedOut: Int32 = 124
    package static let cannotExecute: Int32 = 126
    package static let commandNotFound: Int32 = 127
}

/// The reason why the program ends with a code other than 0: one line on standard error.
package struct Failure: Error, Hashable {
    package let code: Int32
    /// The message, `WHAT: WHY`, with the remedy if there is one.
    package let message: String

    package init(_ code: Int32, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Creates the failure for an error on the command line.
    package static func usage(_ subject: String, _ reason: String) -> Failure {
        Failure(ExitCode.usage, "\(subject): \(reason)")
    }

    /// Creates the failure of a system call that the program cannot do without.
    package init(systemCall call: String, _ number: Int32) {
        let remedy = number == EMFILE ? "; the limit of open files is too low, raise it with 'ulimit -n'" : ""
        self.init(ExitCode.system, "\(call): \(errorText(number))\(remedy)")
    }

    package init(_ error: MonitorError) {
        switch error {
        case .noSuchNamespace(let namespace):
            self.init(ExitCode.noInput, "--netns \(namespace): \(error); 'ip netns' lists them")
        case .notPermitted(let namespace):
            self.init(ExitCode.notPermitted, "--netns \(namespace): \(error); run it as root or with CAP_SYS_ADMIN")
        case .system(let call, let number):
            self.init(systemCall: call, number)
        case .recording(let path, let number):
            let why =
                switch number {
                case ELOOP: "it is a symbolic link, which is not followed; name the file itself"
                case EMLINK: "it has another hard link; remove it, or name another file"
                case EPERM: "it belongs to another user or is immutable; name another file"
                default: errorText(number)
                }
            self.init(ExitCode.cannotCreate, "\(path): cannot create: \(why)")
        }
    }

    /// Returns the failure without the passwords of URLs among the arguments that the message quotes.
    func withoutPasswords(of arguments: [String]) -> Failure {
        // The value of an option may follow its name and '='.
        let texts = arguments.flatMap { argument in
            [argument[...]] + (argument.firstIndex(of: "=").map { [argument[argument.index(after: $0)...]] } ?? [])
        }
        var message = message
        for text in texts.map(String.init) {
            let shown = UserInformation.withoutPassword(text)
            if shown != text { message = message.replacing(text, with: shown) }
        }
        return Failure(code, message)
    }

    /// The line for standard error, without newlines and control characters.
    package var line: String { TextStyle.printable("netwatch: \(message.split(separator: "\n").joined(separator: " "))") }
}

/// Ends the program with a code and without a message, because the output has already reported the reason.
package struct SilentExit: Error, Hashable {
    package let code: Int32

    package init(code: Int32) {
        self.code = code
    }
}
