public import Foundation
public import HTTPSession
internal import EventLoop

extension TransferTask {
    /// The direction of a task's progress: bytes of the request body or of the response body.
    @nonexhaustive public enum ProgressKind: Hashable, Sendable {
        case upload, download
    }

    /// Returns a Foundation `Progress` of the task's upload or download, in bytes. Its total is -1 while the length is not known.
    ///
    /// Canceling, pausing and resuming the progress does the same to the task. Each call creates a new one, which is updated
    /// until the task's end.
    public func foundationProgress(_ kind: ProgressKind) -> Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak self] in self?.cancel() }
        // Foundation calls each handler on another thread, so the calls may arrive in another order: the current state decides.
        let turn = Locked(())
        let apply: @Sendable () -> Void = { [weak self, weak progress] in
            turn.withLock { _ in
                if progress?.isPaused == true { self?.suspend() } else { self?.resume() }
            }
        }
        (progress.pausingHandler, progress.resumingHandler) = (apply, apply)
        onProgress { [weak self] present in
            let (done, total) =
                switch kind {
                case .upload: (present.bytesSent, present.expectedToSend)
                case .download: (present.bytesReceived, present.expectedToReceive)
                }
            // If the length was never announced, it is known when the task has finished.
            let isComplete = if case .success? = self?.result { true } else { false }
            progress.totalUnitCount = total ?? (isComplete ? done : -1)
            progress.completedUnitCount = done
        }
        return progress
    }
}
