/// The numbers of targets by their endpoints. It is empty until it is first needed, because most monitors receive no reports.
///
/// It has only the hash values of endpoints, so that 100,000 targets need 3 MB. The caller compares the endpoints.
struct TargetIndex: Sendable {
    private var first: [Int: TargetID] = [:]
    // The further targets with an equal hash value; there are few.
    private var further: [Int: [TargetID]] = [:]
    private(set) var isBuilt = false

    /// Begins the index. The caller then adds all targets.
    mutating func begin(count: Int) {
        isBuilt = true
        first.reserveCapacity(count)
    }

    /// Adds a target. Does nothing before ``begin(count:)``.
    mutating func add(_ id: TargetID, _ endpoint: Endpoint) {
        guard isBuilt else { return }
        let hash = endpoint.hashValue
        if first[hash] == nil { first[hash] = id } else { further[hash, default: []].append(id) }
    }

    /// Removes a target.
    mutating func remove(_ id: TargetID, _ endpoint: Endpoint) {
        guard isBuilt else { return }
        let hash = endpoint.hashValue
        if first[hash] == id {
            first[hash] = further[hash]?.popLast()
        } else {
            further[hash]?.removeAll { $0 == id }
        }
        if further[hash]?.isEmpty == true { further[hash] = nil }
    }

    /// Returns all targets with the endpoint, in order, and possibly a target with another endpoint of the same hash value.
    func targets(of endpoint: Endpoint) -> [TargetID] {
        let hash = endpoint.hashValue
        guard let first = first[hash] else { return [] }
        return ([first] + further[hash, default: []]).sorted()
    }
}
