public import Foundation
public import HTTPSession
internal import EventLoop

extension TransferTask {
    /// Which half of a task.
    @nonexhaustive public enum ProgressKind: Hashable, Sendable {
        case upload, download
    }

    /// A Foundation `Progress` of one half of the task, in bytes; its total is -1 while the length is not known. Cancelling, pausing
    /// and resuming it does the same to the task. Each call makes a new one, which follows the task until its end.
    public func foundationProgress(_ kind: ProgressKind) -> Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak self] in self?.cancel() }
        // Foundation calls either on a thread of its own: the later word may come first.
        let turn = Locked(())
        let obey: @Sendable () -> Void = { [weak self, weak progress] in
            turn.withLock { _ in
                if progress?.isPaused == true { self?.suspend() } else { self?.resume() }
            }
        }
        (progress.pausingHandler, progress.resumingHandler) = (obey, obey)
        onProgress { [weak self] present in
            let (done, total) =
                switch kind {
                case .upload: (present.sent, present.expectedToSend)
                case .download: (present.received, present.expectedToReceive)
                }
            // What was never told is known in the end.
            let isWhole = if case .success? = self?.result { true } else { false }
            progress.totalUnitCount = total ?? (isWhole ? done : -1)
            progress.completedUnitCount = done
        }
        return progress
    }
}
