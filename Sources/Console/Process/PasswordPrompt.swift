import CLinux
import Glibc

/// The question for a password on the controlling terminal, which does not show the answer.
///
/// getpass(3) also switches off the terminal's signal keys: Ctrl-C and Ctrl-Z would become part of the password.
enum PasswordPrompt {
    enum Problem: Error {
        /// The process has no controlling terminal.
        case noTerminal
        /// The input ended before the end of the line: Ctrl-D, or the terminal is gone.
        case noLine
        /// The line is not UTF-8.
        case notText
    }

    /// Asks, and returns the line without its newline. A signal that ends the program, Ctrl-C included, ends it after the terminal shows its input
    /// again; Ctrl-Z stops it likewise, and it asks again when it continues.
    static func read(_ prompt: String) throws(Problem) -> String {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { throw .noTerminal }
        defer { close(terminal) }
        var (original, signals) = (termios(), sigset_t())
        guard tcgetattr(terminal, &original) == 0 else { throw .noTerminal }
        sigemptyset(&signals)
        for number in [SIGINT, SIGTERM, SIGCONT] { sigaddset(&signals, number) }
        for number in [SIGHUP, SIGQUIT, SIGTSTP] where netwatch_signal_is_ignored(number) == 0 { sigaddset(&signals, number) }
        var formerMask = sigset_t()
        pthread_sigmask(SIG_BLOCK, &signals, &formerMask)
        defer { pthread_sigmask(SIG_SETMASK, &formerMask, nil) }
        let arrivals = netwatch_signal_descriptor(&signals)
        guard arrivals >= 0 else { throw .noTerminal }
        defer { close(arrivals) }

        var (isHidden, hasStopped) = (false, false)
        /// Shows the input again. In the background the terminal is another program's.
        func show() {
            guard isHidden else { return }
            isHidden = false
            guard !Terminal.isInBackground(of: terminal) else { return }
            tcsetattr(terminal, TCSADRAIN, &original)
            write("\n", to: terminal)
        }
        defer { show() }
        var line: [UInt8] = []
        while true {
            // Signals first: a job in the background would stop before it saw the one that ends it.
            let number = netwatch_read_signal(arrivals)
            switch number {
            case ...0: break
            case SIGCONT:
                // A shell may have changed the terminal meanwhile. After Ctrl-Z, this signal has been dealt with.
                if !hasStopped { isHidden = false }
                hasStopped = false
                continue
            case SIGTSTP:
                show()
                hasStopped = true
                stop()
                continue
            case SIGQUIT:
                show()
                pthread_sigmask(SIG_SETMASK, &formerMask, nil)
                raise(SIGQUIT)
            default:
                show()
                Signals.end(by: number)
            }
            if !isHidden {
                var hidden = original
                hidden.c_lflag &= ~tcflag_t(ECHO)
                hidden.c_lflag |= tcflag_t(ISIG | ICANON)
                // In the background this stops the process until `fg`.
                guard tcsetattr(terminal, TCSAFLUSH, &hidden) == 0 else { throw .noTerminal }
                isHidden = true
                line = []
                write(prompt, to: terminal)
            }
            var sources = [
                pollfd(fd: terminal, events: Int16(POLLIN), revents: 0), pollfd(fd: arrivals, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&sources, 2, -1) > 0, sources[0].revents != 0, sources[1].revents == 0 else { continue }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = Glibc.read(terminal, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .noLine }
            line += buffer[..<count]
            guard let end = line.firstIndex(of: UInt8(ascii: "\n")) else { continue }
            guard let text = String(validating: line[..<end], as: UTF8.self) else { throw .notText }
            return text
        }
    }

    /// Stops the process, as Ctrl-Z does without a handler, and returns when it continues.
    private static func stop() {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTSTP)
        raise(SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    private static func write(_ text: String, to terminal: Int32) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(terminal, $0.baseAddress, $0.count) }
    }
}
