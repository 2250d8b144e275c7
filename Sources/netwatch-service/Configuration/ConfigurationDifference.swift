import Reachability

/// The changes of targets and settings from one configuration to the next, for a service that loads its configuration while it runs.
///
/// A target keeps its history by its key. Its probes restart only if its address or its settings change.
struct ConfigurationDifference: Hashable, Sendable {
    /// The places of the targets in the former configuration that are not in the next one.
    var removed: [Int] = []
    /// The places of the targets in the next configuration that are not in the former one.
    var added: [Int] = []
    /// The targets with another address or other settings.
    var changed: [Pair] = []
    /// The targets whose probes continue.
    var retained: [Pair] = []
    /// The places of a target in both configurations.
    struct Pair: Hashable, Sendable {
        var former: Int
        var next: Int
    }

    /// Compares configurations. The settings are those of the targets, with the content of their files.
    init(
        from former: (configuration: Configuration, settings: [ProbeSettings]),
        to next: (configuration: Configuration, settings: [ProbeSettings])
    ) {
        var places: [String: Int] = [:]
        for (place, target) in former.configuration.targets.enumerated() { places[target.key] = place }
        for (place, target) in next.configuration.targets.enumerated() {
            guard let old = places.removeValue(forKey: target.key) else {
                added.append(place)
                continue
            }
            let isSame =
                former.configuration.targets[old].endpoint == target.endpoint && former.settings[old] == next.settings[place]
            if isSame {
                retained.append(Pair(former: old, next: place))
            } else {
                changed.append(Pair(former: old, next: place))
            }
        }
        removed = places.values.sorted()
    }

    /// Returns the numbers of targets that a user added, removed and changed. A target with another name or group is a changed one, although its
    /// probes continue.
    func counts(from former: Configuration, to next: Configuration) -> ReloadCounts {
        let renamed = retained.count { pair in
            !former.targets[pair.former].isDescribed(as: next.targets[pair.next])
        }
        return ReloadCounts(added: added.count, removed: removed.count, changed: changed.count + renamed)
    }
}

extension ConfiguredTarget {
    /// Whether another target has the same description for people: all that its probes do not need.
    fileprivate func isDescribed(as other: ConfiguredTarget) -> Bool {
        var other = other
        (other.settings, other.files, other.origin) = (settings, files, origin)
        return self == other
    }
}
