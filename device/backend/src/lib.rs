//! The vhost-user device process around the gen9 model.
