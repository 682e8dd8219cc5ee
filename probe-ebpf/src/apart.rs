//! Functions that the kernel verifies apart from those that call them ("global" functions, kernel 5.6): once, knowing nothing of what
//! they are given, and not once for each way that leads to each call. Verifying is most of what an observation takes to begin.
//!
//! Such a function has a name of its own in the object, is not inlined, and is given numbers and pointers to memory of which the kernel
//! sees the type; it answers a number. It is to work through what would otherwise multiply with what comes after it.

/// A pointer that such a function is given, which the kernel takes for one that may be null.
pub trait Given {
    type Reference;

    /// `None` never happens.
    ///
    /// # Safety
    /// The pointer must be null or valid for as long as the function runs, and nobody else may write to what a `*mut` points to but in
    /// ways that the type allows for.
    unsafe fn given(self) -> Option<Self::Reference>;
}

impl<T: 'static> Given for *const T {
    type Reference = &'static T;

    #[inline(always)]
    unsafe fn given(self) -> Option<&'static T> {
        // SAFETY: by contract.
        unsafe { self.as_ref() }
    }
}

impl<T: 'static> Given for *mut T {
    type Reference = &'static mut T;

    #[inline(always)]
    unsafe fn given(self) -> Option<&'static mut T> {
        // SAFETY: by contract.
        unsafe { self.as_mut() }
    }
}

/// Makes references of the pointers that a function was given, which are to map values; answers 0 without.
macro_rules! given {
    ($($pointer:ident),+) => {$(
        // SAFETY: callers give references to map values, which live as long as the program runs.
        let Some($pointer) = (unsafe { $crate::apart::Given::given($pointer) }) else { return 0 };
    )+};
}

pub(crate) use given;
