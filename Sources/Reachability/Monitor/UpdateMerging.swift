internal import EventLoop

extension PathUpdate: Coalescing {
    package func following(_ earlier: PathUpdate) -> PathUpdate {
        PathUpdate(
            path: path, reasons: PathChangeReason.allCases.filter { reasons.contains($0) || earlier.reasons.contains($0) },
            isInitial: isInitial || earlier.isInitial, coalescedEventCount: coalescedEventCount + earlier.coalescedEventCount,
            moment: moment
        )
    }
}

extension ServerUpdate: Coalescing {
    package func following(_ earlier: ServerUpdate) -> ServerUpdate { earlier.isInitial ? asInitial() : self }
}
