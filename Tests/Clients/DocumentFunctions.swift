// The function that the examples of the documents leave to the reader's program. Their types are in their blocks.
import HTTPSessionJournal

func show(_ event: DurableEvent) async { print(event.outcome) }
