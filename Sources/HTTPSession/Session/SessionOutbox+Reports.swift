extension SessionOutbox {
    /// Announces a report of a task's machine as an event.
    func announce(_ report: TaskMachine.Report, of task: TransferTask) {
        switch report {
        case .redirected(let head): announce(.redirected(task, head))
        case .challenged(let challenge): announce(.challenged(task, challenge))
        case .serverTrustChallenged(let challenge): announce(.serverTrustChallenged(task, challenge))
        case .clientCertificateChallenged(let challenge): announce(.clientCertificateChallenged(task, challenge))
        case .becameDownload(let destination):
            task.become(.download)
            announce(.becameDownload(task, destination))
        case .willRetry(let error): announce(.willRetry(task, error))
        case .waitingForConnectivity(let reason): announce(.waitingForConnectivity(task, reason))
        case .downloadContinued(let offset, let total): announce(.downloadContinued(task, offset: offset, total: total))
        case .uploadContinued(let offset, let total): announce(.uploadContinued(task, offset: offset, total: total))
        case .fileMoved(let destination): detail(.fileMoved(task, destination))
        case .fileMoveFailed(let error): announce(.fileMoveFailed(task, error))
        }
    }
}

extension TransferTask.State {
    init(_ visibleState: TaskMachine.VisibleState) {
        self =
            switch visibleState {
            case .suspended: .suspended
            case .waiting: .waiting
            case .running: .running
            case .backingOff: .backingOff
            case .waitingForConnectivity: .waitingForConnectivity
            }
    }
}
