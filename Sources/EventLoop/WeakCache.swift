/// Objects that are expensive to make and shared by equal keys, for as long as somebody holds them.
package final class WeakCache<Key: Hashable & Sendable, Object: AnyObject & Sendable>: Sendable {
    // A class, not a struct: Swift 6.3.1 takes a dictionary's absent value for one that is there if it is a struct of a weak reference and an
    // ObjectIdentifier, and crashes in swift_weakLoadStrong.
    // @unchecked: a weak reference is read from any thread, and never set again.
    private final class Entry: @unchecked Sendable {
        private(set) weak var object: Object?
        let identifier: ObjectIdentifier

        init(_ object: Object) {
            self.object = object
            identifier = ObjectIdentifier(object)
        }
    }

    private let entries = Locked<[Key: Entry]>([:])

    package init() {}

    /// The object for an equal key, if somebody holds one.
    package func object(for key: Key) -> Object? { entries.withLock { $0[key]?.object } }

    /// Adds an object, which calls ``remove(_:for:)`` when it is released.
    ///
    /// - Returns: the object for the key: `object`, or another one if another thread was quicker.
    package func insert(_ object: Object, for key: Key) -> Object {
        entries.withLock { entries in
            if let object = entries[key]?.object { return object }
            entries[key] = Entry(object)
            return object
        }
    }

    /// Removes the entry of an object that is being released, unless another object has taken its place. The entry's object is not read under
    /// the lock: releasing the last reference there would come back here and deadlock.
    package func remove(_ identifier: ObjectIdentifier, for key: Key) {
        entries.withLock { if $0[key]?.identifier == identifier { $0[key] = nil } }
    }
}
