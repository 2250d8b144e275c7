import EventLoop
import Glibc

extension Program {
    /// Starts a program on a host as an ordinary user of a machine: in the host's network namespace, with that machine's /etc and
    /// /sys, and without a capability. The user is `nobody`. In a user namespace that has no other user than root, and if `nobody`
    /// may not execute the program, it is a root without capabilities.
    public convenience init(
        unprivileged command: [String], on host: LabHost, etc: EtcDirectory, output: Output = .pipe
    ) throws {
        guard let program = command.first else { throw LabError("an empty command") }
        // A container may forbid to mount /sys. Programs then see the interfaces of another namespace there.
        let script = #"mount --bind "$0" /etc && { mount -t sysfs none /sys 2>/dev/null || :; } && exec "$@""#
        let user = Unprivileged.canBecomeNobody(toExecute: try locate(program)) ? Unprivileged.nobody : []
        // The test's own variables may name authorities below the /etc that is hidden.
        try self.init(
            ["unshare", "--mount", "sh", "-c", script, etc.path, "setpriv"] + user + Unprivileged.nothing + command, on: host,
            environment: ["SSL_CERT_FILE": nil, "SSL_CERT_DIR": nil], output: output)
    }
}

private enum Unprivileged {
    static let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    static let nothing = ["--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"]
    private static let answers = Locked<[String: Bool]>([:])

    static func canBecomeNobody(toExecute program: String) -> Bool {
        answers.withLock { answers in
            if let answer = answers[program] { return answer }
            let answer = (try? runProgram(["setpriv"] + nobody + nothing + ["test", "-x", program], on: nil)) != nil
            answers[program] = answer
            return answer
        }
    }
}
