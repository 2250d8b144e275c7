package import Glibc

/// A value that only one thread at a time may use.
///
/// The standard library's `Mutex` hands a contended lock over inside the kernel (FUTEX_LOCK_PI), where ThreadSanitizer cannot see
/// it: the suite then reported races between critical sections of the same lock. It knows pthread_mutex_t.
// @unchecked: `value` is touched only while `mutex` is held, which the compiler cannot see.
package final class Locked<Value: Sendable>: @unchecked Sendable {
    // Its address must stay: pthread_mutex_init(3) allows no copies.
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Behind a pointer: a stored property would have every access checked for exclusivity, which the lock gives.
    @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    package init(_ value: Value) {
        self.value.initialize(to: value)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the value, alone. It must not come back for the same lock, do I/O or call a user's code.
    // Inlinable, because through a generic value's witnesses a short critical section takes a thousand instructions.
    @inlinable
    package func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
